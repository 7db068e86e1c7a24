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
  const programs = ['agent', 'contender', 'writer'].map((name) => join(import.meta.dirname, `${name}.mjs`));
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

/** The file that runs one of the programs. */
export function program(name: 'agent' | 'contender' | 'writer'): string {
  return join(OUT, `${name}.js`);
}
