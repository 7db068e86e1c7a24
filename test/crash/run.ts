/**
 * Crashes on purpose, and what must hold afterwards: nothing accepted is lost, nothing has two owners, no stale write and no effect
 * happens twice, and each case's audit replays to the ledger.
 *
 *   npm run test:crash                      all of it: every point of a handover ten times, in both modes, 1,000 kills, 50 stops; some 80 minutes on two cores
 *   npm run test:crash -- short             less of each, for the gate
 *   npm run test:crash -- MODE [N] [SEED]   one of them
 *
 * The last line is the count of violations over all modes that ran.
 */
import {
  type CrashDatabase,
  postgresDatabase,
  postgresDatabases,
  sqliteDatabase,
  sqliteDatabases,
  type TwoDatabases,
} from './databases.js';
import { asynchronousFailover, synchronousFailover } from './failover.js';
import { killNodes } from './kills.js';
import type { SeparateVerdict } from './separate/judge.js';
import { failingLinks } from './separate/link.js';
import { separateSweep } from './separate/sweep.js';
import { stops } from './stops.js';
import { everyCrash, POINTS, sweep } from './sweep.js';
import { three } from './three.js';
import { killWriters } from './writers.js';

const [only, count, seedGiven] = process.argv.slice(2);
const SEED = Number(seedGiven ?? Date.now() % 1_000_000);
/** Of all; whatever hangs then is a failure. */
const LIMIT_MS = 100 * 60_000;

interface Summary {
  readonly line: string;
  readonly violations: readonly string[];
}

/** `deadline` says when it begins nothing more; fewer than `n` by then is a violation. */
type Mode = (n: number, seed: number, deadline: number) => Promise<Summary>;

/** Each with how much of it there is by default and in short, and the seconds it has for the default. */
const MODES: Readonly<Record<string, readonly [Mode, n: number, short: number, seconds: number]>> = {
  sweep: [runSweep, 10, 1, 1_400],
  kills: [runKills, 1_000, 200, 700],
  stops: [runStops, 50, 10, 180],
  failover: [runFailover, 1, 1, 90],
  three: [runThree, 3, 1, 200],
  'separate-sweep': [runSeparateSweep, 10, 1, 2_400],
  'separate-link': [runSeparateLink, 200, 16, 800],
};

const DATABASES: readonly (() => Promise<CrashDatabase>)[] = [sqliteDatabase, postgresDatabase];
const TWO_DATABASES: readonly (() => Promise<TwoDatabases>)[] = [sqliteDatabases, postgresDatabases];
/** Pairs of nodes that crash at the same time, each on its own database: a pair alone waits much of the time. */
const PAIRS = 2;
/** The share of kills that are of whole nodes that speak HTTP; the others are of processes that use the ledger only. */
const NODE_SHARE = 0.2;

interface Counted {
  readonly name: string;
  readonly violations: readonly string[];
}

interface Closable {
  readonly name: string;
  close(): Promise<void>;
}

async function on<D extends Closable, T extends { readonly violations: readonly string[] }>(
  make: () => Promise<D>,
  work: (database: D) => Promise<T>,
): Promise<T & Counted> {
  const database = await make();
  try {
    return { name: database.name, ...(await work(database)) };
  } finally {
    await database.close();
  }
}

function violationsOf(results: readonly Counted[]): string[] {
  return results.flatMap(({ name, violations }) => violations.map((one) => `${name}: ${one}`));
}

/** In time, all that was asked for was done. */
function shortfall(what: string, done: number, asked: number): string[] {
  return done < asked ? [`only ${done} of ${asked} ${what} in the time there is`] : [];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

async function runSweep(rounds: number, seed: number, deadline: number): Promise<Summary> {
  const points = POINTS.shared.length;
  const results = await Promise.all(
    DATABASES.flatMap((make, at) => {
      const left = everyCrash(POINTS.shared, rounds, seed + at);
      return Array.from({ length: PAIRS }, (_, pair) =>
        on(make, (database) => sweep(database, left, seed + 10 * at + pair, deadline)),
      );
    }),
  );
  const names = [...new Set(results.map(({ name }) => name))];
  const each = names.map((name) => {
    const of = results.filter((one) => one.name === name);
    const crashes = sum(of.map((one) => one.crashes));
    const cases = sum(of.map((one) => one.cases));
    return {
      name,
      crashes,
      line: `${name} ${crashes} crashes, ${cases} cases, ${sum(of.map((one) => one.accepted))} accepted, ${sum(of.map((one) => one.escalated))} with a person`,
    };
  });
  return {
    line: `${points} of ${POINTS.separate.length} fault points; ${each.map(({ line }) => line).join('; ')}`,
    violations: [
      ...violationsOf(results),
      ...each.flatMap(({ name, crashes }) => shortfall(`crashes on ${name}`, crashes, points * rounds)),
    ],
  };
}

async function runKills(count: number, seed: number, deadline: number): Promise<Summary> {
  const nodes = Math.ceil((count * NODE_SHARE) / DATABASES.length);
  const writers = Math.ceil(count / DATABASES.length) - nodes;
  const results = await Promise.all(
    DATABASES.flatMap((make, at) => [
      on(make, async (database) => ({
        what: 'nodes',
        asked: nodes,
        ...(await killNodes(database, nodes, seed + 100 * at, deadline)),
      })),
      on(make, async (database) => ({
        what: 'writers without HTTP',
        asked: writers,
        ...(await killWriters(database, writers, seed + 100 * at + 1, deadline)),
      })),
    ]),
  );
  const each = results.map(
    ({ name, what, kills, cases, accepted, effects }) =>
      `${name} ${kills} kills of ${what}, ${cases} cases, ${accepted} accepted, ${effects} effects`,
  );
  return {
    line: `${sum(results.map(({ kills }) => kills))} kills: ${each.join('; ')}`,
    violations: [
      ...violationsOf(results),
      ...results.flatMap(({ name, what, kills, asked }) =>
        shortfall(`kills of ${what} on ${name}`, kills, asked),
      ),
    ],
  };
}

async function runStops(count: number, seed: number, deadline: number): Promise<Summary> {
  const database = await postgresDatabase();
  try {
    const result = await stops(database, count, seed, deadline);
    const { cases, accepted, unknown } = result;
    return {
      line: `${result.stops} immediate stops, ${cases} cases, ${accepted} accepted, ${unknown} told unknown and settled`,
      violations: [...result.violations, ...shortfall('stops', result.stops, count)],
    };
  } finally {
    await database.close();
  }
}

async function runFailover(times: number): Promise<Summary> {
  const lines: string[] = [];
  const violations: string[] = [];
  for (let time = 0; time < times; time++) {
    const kept = await synchronousFailover();
    const lost = await asynchronousFailover();
    lines.push(
      `synchronous, old primary back: ${kept.cases} cases, ${kept.accepted} accepted, ${kept.writtenByOld} entries written by the old`,
      `asynchronous: ${lost.regressed} acknowledged and lost, ${lost.quarantined} quarantined, ${lost.after} accepted since`,
    );
    violations.push(...kept.violations, ...lost.violations);
  }
  return { line: `${times} of each; ${lines.join('; ')}`, violations };
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

/** A ledger each: a crash of either at every point, on cases that go there, and on cases that come back. */
async function runSeparateSweep(rounds: number, seed: number, deadline: number): Promise<Summary> {
  const points = POINTS.separate.length;
  const results = await Promise.all(
    TWO_DATABASES.flatMap((make, at) => {
      const left = everyCrash(POINTS.separate, rounds, seed + at);
      return Array.from({ length: PAIRS }, (_, pair) =>
        on(make, (databases) => separateSweep(databases, left, seed + 10 * at + pair, deadline)),
      );
    }),
  );
  const names = [...new Set(results.map(({ name }) => name))];
  const each = names.map((name) => {
    const of = results.filter((one) => one.name === name);
    const crashes = sum(of.map((one) => one.crashes));
    const line = `${name} ${crashes} crashes, ${sum(of.map((one) => one.returning))} of them on the way back`;
    return { name, crashes, line };
  });
  return {
    line: `${points} fault points; ${each.map(({ line }) => line).join('; ')}; ${observed(results)}`,
    violations: [
      ...violationsOf(results),
      ...each.flatMap(({ name, crashes }) => shortfall(`crashes on ${name}`, crashes, points * rounds)),
    ],
  };
}

/** A ledger each, and links between them that fail; in half of the runs nodes are killed, too. */
async function runSeparateLink(count: number, seed: number, deadline: number): Promise<Summary> {
  const each = Math.ceil(count / (2 * TWO_DATABASES.length));
  const results = await Promise.all(
    TWO_DATABASES.flatMap((make, at) =>
      [false, true].map((kill, also) =>
        on(make, (databases) =>
          failingLinks(databases, { count: each, kill }, seed + 10 * at + 2 * also, deadline),
        ),
      ),
    ),
  );
  const struck = new Map<string, number>();
  for (const [what, times] of results.flatMap((one) => Object.entries(one.struck))) {
    struck.set(what, (struck.get(what) ?? 0) + times);
  }
  const lines = results.map(({ name, handovers, kills }) => `${name} ${handovers} cases, ${kills} kills`);
  const altered = sum(results.map((one) => one.altered));
  return {
    line: `${lines.join('; ')}; ${JSON.stringify(Object.fromEntries([...struck].sort()))}; ${altered} offers changed and in doubt; ${observed(results)}`,
    violations: [
      ...violationsOf(results),
      ...results.flatMap(({ name, handovers }) => shortfall(`cases on ${name}`, handovers, each)),
    ],
  };
}

function observed(results: readonly SeparateVerdict[]): string {
  const all = (of: (one: SeparateVerdict) => number) => sum(results.map(of));
  const ended = new Map<string, number>();
  for (const [state, times] of results.flatMap((one) => Object.entries(one.ended))) {
    ended.set(state, (ended.get(state) ?? 0) + times);
  }
  const offers = [...ended].sort().map(([state, times]) => `${times} ${state}`);
  const looks = all((one) => one.looks);
  const acts = `${all((one) => one.admitted)} effects admitted, ${all((one) => one.refused)} writes refused (${all((one) => one.frozen)} frozen)`;
  return `${all((one) => one.cases)} cases, ${all((one) => one.moved)} changes of owner, ${all((one) => one.escalated)} left to a person, offers ${offers.join(', ')}; ${acts}, ${looks} looks at both ledgers`;
}

function limit(): void {
  setTimeout(() => {
    console.log(`VIOLATION: not done within ${LIMIT_MS / 60_000} minutes`);
    process.exit(1);
  }, LIMIT_MS).unref();
}

async function main(): Promise<number> {
  const isShort = only === 'short';
  if (only !== undefined && !isShort && !Object.hasOwn(MODES, only)) {
    console.error(`There is no mode ${only}; there are short, ${Object.keys(MODES).join(', ')}.`);
    return 2;
  }
  if (count === undefined) limit();
  let violations = 0;
  for (const [name, [mode, byDefault, short, limitSeconds]] of Object.entries(MODES)) {
    if (only !== undefined && !isShort && only !== name) continue;
    const began = Date.now();
    const asked = Number(isShort ? short : (count ?? byDefault));
    if (asked === 0) continue;
    // In proportion, with a minute to begin and to settle in.
    const deadline = began + 60_000 + (limitSeconds * 1000 * asked) / byDefault;
    const summary = await mode(asked, SEED, deadline);
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
