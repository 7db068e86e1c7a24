/**
 * Crashes on purpose, and what must hold afterwards: nothing accepted is lost, nothing has two owners, no stale write and no effect
 * happens twice, and each case's audit replays to the ledger.
 *
 *   npm run test:crash [-- MODE [N] [SEED]]
 *
 * The last line is the count of violations over all modes that ran.
 */
import { FAULT_POINTS, type FaultPoint } from '../../src/faults/index.js';
import { type CrashDatabase, postgresDatabase, sqliteDatabase } from './databases.js';
import { synchronousFailover } from './failover.js';
import { kills } from './kills.js';
import { stops } from './stops.js';
import { sweep } from './sweep.js';
import { three } from './three.js';

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
  kills: [runKills, 1_000],
  stops: [runStops, 50],
  failover: [runFailover, 1],
  three: [runThree, 5],
};

const DATABASES: readonly (() => Promise<CrashDatabase>)[] = [sqliteDatabase, postgresDatabase];

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

/** All of them are of whole nodes that speak HTTP. */
async function runKills(count: number, seed: number): Promise<Summary> {
  const results = await onEach(async (database, at) => ({
    name: database.name,
    ...(await kills(database, Math.ceil(count / DATABASES.length), seed + 100 * at)),
  }));
  const each = results.map(
    (one) =>
      `${one.name} ${one.kills} kills, ${one.cases} cases, ${one.accepted} accepted, ${one.effects} effects`,
  );
  return {
    line: each.join('; '),
    violations: results.flatMap(({ name, violations }) => violations.map((one) => `${name}: ${one}`)),
  };
}

async function runStops(count: number, seed: number): Promise<Summary> {
  const database = await postgresDatabase();
  try {
    const result = await stops(database, count, seed);
    const { cases, accepted, unknown } = result;
    return {
      line: `${result.stops} immediate stops, ${cases} cases, ${accepted} accepted, ${unknown} told unknown and settled`,
      violations: result.violations,
    };
  } finally {
    await database.close();
  }
}

async function runFailover(times: number): Promise<Summary> {
  let cases = 0;
  let accepted = 0;
  const violations: string[] = [];
  for (let time = 0; time < times; time++) {
    const result = await synchronousFailover();
    cases += result.cases;
    accepted += result.accepted;
    violations.push(...result.violations);
  }
  return {
    line: `${times} synchronous failovers, old primary back each time, ${cases} cases, ${accepted} accepted`,
    violations,
  };
}

async function runThree(cases: number): Promise<Summary> {
  const database = await postgresDatabase();
  try {
    const { epochs, outcomes, violations } = await three(database, cases);
    return {
      line: `3 nodes, 64 callers, ${cases} cases, ${epochs} acceptances, ${JSON.stringify(Object.fromEntries(outcomes))}`,
      violations,
    };
  } finally {
    await database.close();
  }
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
