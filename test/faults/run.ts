/**
 * Faults of the operating system and of the database's server, one after the other: `run.ts`. Prints a line for each, and at the end
 * how many passed and failed. Needs strace, which injects errors into system calls.
 */
import { spawnSync } from 'node:child_process';
import { CLOCK_CASES } from './clock-cases.js';
import { POSTGRES_CASES } from './postgres-cases.js';
import { SQLITE_IO_CASES } from './sqlite-io-cases.js';

export interface FaultCase {
  readonly name: string;
  /** Resolves to a few words on what was seen; rejects where that is not the documented answer. */
  run(): Promise<string>;
}

const CASES: readonly FaultCase[] = [...SQLITE_IO_CASES, ...POSTGRES_CASES, ...CLOCK_CASES];

async function main(): Promise<number> {
  if (spawnSync('strace', ['-V']).status !== 0) {
    process.stderr.write(
      'strace is not installed; the faults of the operating system cannot be injected without it.\n',
    );
    return 1;
  }
  let passed = 0;
  for (const { name, run } of CASES) {
    try {
      process.stdout.write(`ok ${name}: ${await run()}\n`);
      passed += 1;
    } catch (error) {
      process.stdout.write(`not ok ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    }
  }
  const failed = CASES.length - passed;
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

process.exitCode = await main();
