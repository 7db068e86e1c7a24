import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openSqliteLedger } from '../../src/storage/index.js';
import { KIND, openCase } from '../storage/suite/fixtures.js';
import type { FaultCase } from './run.js';

const SCRIPT = fileURLToPath(new URL('sqlite-io.ts', import.meta.url));

/** What the script saw. */
interface Seen {
  readonly acknowledged: number;
  readonly refused: number;
  readonly unknown: number;
  readonly warnings: number;
}

/** strace counts calls by thread, so that `when` is that thread's. */
function sqliteCase(
  name: string,
  thread: 'main' | 'writer',
  inject: string,
  codes: string,
  check: (seen: Seen) => boolean,
): FaultCase {
  return {
    name: `SQLite, ${thread} thread: ${name}`,
    async run() {
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-faults-'));
      try {
        const file = join(folder, 'ledger.db');
        const ledger = await openSqliteLedger({ file });
        await ledger.putKind('acme', KIND);
        await openCase(ledger, 'CASE-1');
        await ledger.close();
        const tracer = [
          '-f',
          '-qq',
          '-o',
          '/dev/null',
          '-e',
          'trace=fsync,pwrite64',
          '-e',
          `inject=${inject}`,
        ];
        const script = [process.execPath, '--import', 'tsx', SCRIPT, file, thread, codes];
        const run = promisify(execFile)('strace', [...tracer, ...script], { timeout: 120_000 });
        const seen: Seen = JSON.parse((await run).stdout);
        assert.ok(check(seen), `the fault did not show as expected: ${JSON.stringify(seen)}`);
        return `${seen.acknowledged} acknowledged, ${seen.refused} refused, ${seen.unknown} unknown`;
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  };
}

/** One fsync fails: the commands in it are looked up, and are there or not. */
const lookedUp = (seen: Seen) => seen.warnings > 0 && seen.unknown === 0;
/** Every fsync fails for a while: the file cannot be written anew, so nobody can say. */
const notKnown = (seen: Seen) => seen.unknown > 0;
/** A write that fails commits nothing, and that is known. */
const refused = (seen: Seen) => seen.refused > 0 && seen.unknown === 0;

const UNKNOWN = 'outcome_unknown,ledger_unavailable';
const REFUSED = 'ledger_unavailable';

export const SQLITE_IO_CASES: readonly FaultCase[] = [
  sqliteCase('one fsync fails', 'main', 'fsync:error=EIO:when=20', UNKNOWN, lookedUp),
  sqliteCase('one fsync fails', 'writer', 'fsync:error=EIO:when=20', UNKNOWN, lookedUp),
  sqliteCase('fsync fails for a while', 'main', 'fsync:error=EIO:when=20..26', UNKNOWN, notKnown),
  sqliteCase('the disk is full for a while', 'main', 'pwrite64:error=ENOSPC:when=60..90', REFUSED, refused),
  sqliteCase('the disk is full for a while', 'writer', 'pwrite64:error=ENOSPC:when=60..65', REFUSED, refused),
  sqliteCase(
    'the file is read-only for a while',
    'main',
    'pwrite64:error=EROFS:when=60..90',
    REFUSED,
    refused,
  ),
  sqliteCase(
    'the file is read-only for a while',
    'writer',
    'pwrite64:error=EROFS:when=60..65',
    REFUSED,
    refused,
  ),
];
