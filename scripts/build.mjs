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

function build() {
  const compiler = findCompiler();
  if (compiler === null) {
    process.stderr.write('holdfast: typescript is not installed here; run `npm ci` in this folder first\n');
    return 1;
  }
  const made = join(root, `dist.${process.pid}`);
  const dist = join(root, 'dist');
  try {
    // The compiler's messages go to stderr: stdout belongs to the program that is started afterwards.
    const run = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--outDir', made], {
      cwd: root,
      stdio: ['ignore', 2, 2],
    });
    if (run.status !== 0) return 1;
    const old = `${made}.old`;
    if (existsSync(dist)) renameSync(dist, old);
    try {
      renameSync(made, dist);
    } catch (error) {
      // Another build came first: its result is as good as ours.
      if (!existsSync(dist)) throw error;
    }
    rmSync(old, { recursive: true, force: true });
    return 0;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

process.exitCode = build();
