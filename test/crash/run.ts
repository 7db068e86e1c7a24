/**
 * Crashes on purpose, and what must hold afterwards: nothing accepted is lost, nothing has two owners, no stale write and no effect
 * happens twice, and each case's audit replays to the ledger.
 *
 *   npm run test:crash [-- MODE [N] [SEED]]
 *
 * The last line is the count of violations over all modes that ran.
 */
import { FAULT_POINTS, type FaultPoint } from '../../src/faults/index.js';
import { type CrashDatabase, sqliteDatabase } from './databases.js';
import { sweep } from './sweep.js';

const [only, count, seedGiven] = process.argv.slice(2);
const SEED = Number(seedGiven ?? Date.now() % 1_000_000);

interface Summary {
  readonly line: string;
  readonly violations: readonly string[];
}

type Mode = (n: number, seed: number) => Promise<Summary>;

/** Each with how much of it there is by default. */
const MODES: Readonly<Record<string, readonly [Mode, number]>> = {
  sweep: [runSweep, 10],
};

const DATABASES: readonly (() => Promise<CrashDatabase>)[] = [sqliteDatabase];

/** On all databases at the same time. */
async function onEach<T>(work: (database: CrashDatabase, at: number) => Promise<T>): Promise<T[]> {
  return Promise.all(
    DATABASES.map(async (make, at) => {
      const database = await make();
      try {
        return await work(database, at);
      } finally {
        await database.close();
      }
    }),
  );
}

async function runSweep(rounds: number, seed: number): Promise<Summary> {
  const points = Object.keys(FAULT_POINTS) as FaultPoint[];
  const results = await onEach(async (database, at) => ({
    name: database.name,
    ...(await sweep(database, rounds, seed + at)),
  }));
  const each = results.map(
    ({ name, crashes, cases, accepted }) =>
      `${name} ${crashes} crashes, ${cases} cases, ${accepted} accepted`,
  );
  return {
    line: `${points.length} fault points; ${each.join('; ')}`,
    violations: results.flatMap(({ name, violations }) => violations.map((one) => `${name}: ${one}`)),
  };
}

async function main(): Promise<number> {
  if (only !== undefined && !Object.hasOwn(MODES, only)) {
    console.error(`There is no mode ${only}; there are ${Object.keys(MODES).join(', ')}.`);
    return 2;
  }
  let violations = 0;
  for (const [name, [mode, byDefault]] of Object.entries(MODES)) {
    if (only !== undefined && only !== name) continue;
    const began = Date.now();
    const summary = await mode(Number(count ?? byDefault), SEED);
    for (const violation of summary.violations.slice(0, 50)) console.log(`VIOLATION ${name}: ${violation}`);
    violations += summary.violations.length;
    const seconds = Math.round((Date.now() - began) / 1000);
    console.log(
      `${name}: ${summary.line}; seed ${SEED}, ${seconds} s, ${summary.violations.length} violations`,
    );
  }
  console.log(`${violations} violations`);
  return violations === 0 ? 0 : 1;
}

process.exitCode = await main();
