import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';

const ROOT = join(import.meta.dirname, '../..');
/** Two folders deep, as the files of the package are, and beside its dependencies. */
const MADE = join(ROOT, `dist.${process.pid}`);
const OUT = join(MADE, 'crash');

/**
 * Puts the programs that are killed, each with the built package below it, into a few files: most of what a start costs is to find and
 * read a thousand of them, and there are some two thousand starts.
 */
function bundle(): void {
  mkdirSync(OUT, { recursive: true });
  process.once('exit', () => rmSync(MADE, { recursive: true, force: true }));
  const programs = ['agent', 'contender', 'writer', 'separate/organisation'].map((name) =>
    join(import.meta.dirname, `${name}.mjs`),
  );
  buildSync({
    entryPoints: [...programs, join(ROOT, 'dist/storage/sqlite/writer-thread.js')],
    entryNames: '[name]',
    outdir: OUT,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['better-sqlite3', 'pg-native'],
    // What is no module yet asks for the parts of Node.js by `require`.
    banner: {
      js: "import { createRequire as createRequireHere } from 'node:module'; const require = createRequireHere(import.meta.url);",
    },
    logLevel: 'warning',
  });
}

bundle();

/** Starts one of the programs, in which a test may arm faults. */
export function run(
  name: 'agent' | 'contender' | 'organisation' | 'writer',
  args: readonly string[],
  faults = 'count',
): ChildProcess {
  return fork(join(OUT, `${name}.js`), args, {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, HOLDFAST_FAULTS: faults },
    // Not those of this process: to load TypeScript costs a start four times what it costs without.
    execArgv: [],
  });
}
