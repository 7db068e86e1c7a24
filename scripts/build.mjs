/**
 * Compiles src/ into dist/. The result is made beside dist/ and moved into place when it is whole, so that a process
 * started meanwhile, or an interrupted build, never sees half of it.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

function findCompiler() {
  try {
    return createRequire(import.meta.url).resolve('typescript/bin/tsc');
  } catch {
    return null;
  }
}

function move(from, to) {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) return false;
    throw error;
  }
}

function build() {
  const compiler = findCompiler();
  if (compiler === null) {
    process.stderr.write('holdfast: typescript is not installed here; run `npm ci` in this folder first\n');
    return 1;
  }
  const made = join(root, `dist.${process.pid}`);
  const old = `${made}.old`;
  const dist = join(root, 'dist');
  try {
    // The compiler's messages go to stderr: stdout belongs to the program that is started afterwards.
    const run = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--outDir', made], {
      cwd: root,
      stdio: ['ignore', 2, 2],
    });
    if (run.status !== 0) return 1;
    // Where another build does the same at this moment, one of these finds nothing to move, or finds the other's result
    // in place: that one is as good as ours.
    move(dist, old);
    if (!move(made, dist) && !existsSync(dist)) throw new Error('dist/ could not be put in place');
    return 0;
  } finally {
    for (const path of [made, old]) rmSync(path, { recursive: true, force: true });
  }
}

process.exitCode = build();
