#!/usr/bin/env node
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const command = new URL('../dist/cli/index.js', import.meta.url);
const builder = fileURLToPath(new URL('../scripts/build.mjs', import.meta.url));

/** A clone has no dist/ until it is built; the published package always has one. */
function ensureBuilt() {
  if (existsSync(command)) return true;
  if (!existsSync(builder)) {
    process.stderr.write('holdfast: this installation is incomplete (no dist/); install the package again\n');
    return false;
  }
  process.stderr.write('holdfast: first run from a clone, building dist/ ...\n');
  const run = spawnSync(process.execPath, [builder], { stdio: ['ignore', 2, 2] });
  return run.status === 0 && existsSync(command);
}

if (ensureBuilt()) {
  const { main } = await import(command.href);
  process.exitCode = await main(process.argv.slice(2));
  // Whatever a handler still waits for must not keep a stopped node.
  setTimeout(() => process.exit(), 1_000).unref();
} else {
  process.exitCode = 1;
}
