import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canRun } from './native.js';

/** Removes the folder once its standard input ends, which is when the process that started it does. Servers may still be dying. */
const JANITOR = 'cat >/dev/null; for n in $(seq 100); do rm -rf "$0" 2>/dev/null && exit; sleep 0.1; done';

let made: string | undefined;

/** This process's folder for servers; it does not outlive the process, even a killed one. */
export function scratchFolder(): string {
  if (made !== undefined) return made;
  made = makeReachable(tmpdir()) ?? makeReachable('/tmp') ?? fail();
  const folder = made;
  // A session of its own: an interrupt from the keyboard is not for it.
  const janitor = spawn('sh', ['-c', JANITOR, folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  janitor.unref();
  (janitor.stdin as unknown as { unref(): void }).unref();
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The server's user has to reach the folder through all those above it; a private temporary folder of root would hide it. */
function makeReachable(parent: string): string | undefined {
  const folder = mkdtempSync(join(parent, 'holdfast-postgres-'));
  chmodSync(folder, 0o711);
  if (canRun('test', '-x', folder)) return folder;
  rmSync(folder, { recursive: true });
  return undefined;
}

function fail(): never {
  throw new Error('There is no temporary folder that the user of the PostgreSQL server can reach.');
}
