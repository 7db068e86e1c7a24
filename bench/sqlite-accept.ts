import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { AcceptCommand } from '../src/ledger/index.js';
import { storage } from './built.js';
import { type Bounds, drive, type Rate, rateOf } from './measure.js';
import { filledSqlite, workFolder } from './nodes.js';
import { acceptCommandOf, prepareOffers } from './offers.js';
import { type Row, rateIn, type Section } from './report.js';

const PARTIES = { sender: 'http://127.0.0.1:4101', receiver: 'http://127.0.0.1:4102' };
const BOUNDS: Bounds = { maxCount: 4_000, maxMs: 4_000 };
const LEVELS = [1, 16, 32, 64];
const SHARES = [1, 8, 32, 64];
const WARM_UP = 500;

const LIBRARY = 'ledger.accept, SQLite';
const RAW = 'the same statements, raw';

interface Step {
  readonly sql: string;
  readonly how: 'run' | 'get' | 'all';
  readonly values: readonly unknown[];
}

/** Every acceptance as the statements and the rows with which the library carries it out. */
async function record(file: string, commands: readonly AcceptCommand[]): Promise<Step[][]> {
  let steps: Step[] = [];
  const prepare = Database.prototype.prepare;
  const patched = function (this: Database.Database, sql: string) {
    const statement = prepare.call(this, sql) as unknown as Record<string, (...values: unknown[]) => unknown>;
    for (const how of ['run', 'get', 'all'] as const) {
      const original = statement[how];
      statement[how] = (...values) => {
        steps.push({ sql, how, values });
        return original?.apply(statement, values);
      };
    }
    return statement;
  };
  Database.prototype.prepare = patched as unknown as typeof prepare;
  try {
    const ledger = await storage.openSqliteLedger({ file });
    const recorded: Step[][] = [];
    for (const command of commands) {
      steps = [];
      await ledger.accept(command);
      recorded.push(steps.filter(({ sql }) => !/^(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)/.test(sql)));
    }
    await ledger.close();
    return recorded;
  } finally {
    Database.prototype.prepare = prepare;
  }
}

/** The recorded acceptances with nothing around them: prepared statements, `share` of them in each commit. */
function replay(file: string, transactions: readonly Step[][], share: number, maxMs: number): Rate {
  const db = new Database(file);
  try {
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.pragma('foreign_keys = ON');
    const prepared = new Map<string, Database.Statement>();
    for (const { sql } of transactions.flat()) if (!prepared.has(sql)) prepared.set(sql, db.prepare(sql));
    const begin = db.prepare('BEGIN IMMEDIATE');
    const commit = db.prepare('COMMIT');
    const took: number[] = [];
    const begun = performance.now();
    for (let at = 0; at < transactions.length && performance.now() - begun < maxMs; at += share) {
      const from = performance.now();
      begin.run();
      const together = transactions.slice(at, at + share);
      for (const { sql, how, values } of together.flat()) prepared.get(sql)?.[how](...values);
      commit.run();
      const ms = performance.now() - from;
      for (const _ of together) took.push(ms);
    }
    return rateOf(Float64Array.from(took), performance.now() - begun);
  } finally {
    db.close();
  }
}

export async function acceptOnSqlite(): Promise<Section> {
  const folder = workFolder();
  try {
    const filled = join(folder.path, 'filled.db');
    const count = BOUNDS.maxCount;
    const offers = await filledSqlite(filled, (ledger) => prepareOffers(ledger, PARTIES, count + WARM_UP));
    const commands = offers.map((offer) => acceptCommandOf(offer, PARTIES));
    const scratch = fresh(folder.path, filled, 'scratch');
    const recorded = await record(scratch, commands.slice(0, count));
    const rows: Row[] = [];
    for (const [step, inFlight] of LEVELS.entries()) {
      const share = SHARES[step] ?? 1;
      const raw = replay(fresh(folder.path, filled, `raw-${share}`), recorded, share, BOUNDS.maxMs);
      rows.push({ what: `${RAW}, ${share} a commit`, inFlight: share, rate: raw });
      const ledger = await storage.openSqliteLedger({
        file: fresh(folder.path, filled, `library-${inFlight}`),
      });
      for (const command of commands.slice(count)) await ledger.accept(command);
      const rate = await drive(inFlight, BOUNDS, (index) => ledger.accept(commands[index] as AcceptCommand));
      await ledger.close();
      rows.push({ what: LIBRARY, inFlight, rate });
    }
    const ratio = (inFlight: number) =>
      rateIn(rows, LIBRARY, inFlight).perSecond /
      rateIn(rows, `${RAW}, ${inFlight} a commit`, inFlight).perSecond;
    return {
      name: 'accept-sqlite',
      rows,
      aims: [
        {
          what: 'acceptance, SQLite, 1 in flight / raw single commit',
          got: ratio(1),
          wanted: 0.8,
          bound: 'at least',
        },
        {
          what: 'acceptance, SQLite, 32 in flight / raw shared commit of 32',
          got: ratio(32),
          wanted: 0.8,
          bound: 'at least',
        },
      ],
      notes: [`acceptance, SQLite, 64 in flight / raw shared commit of 64: ${ratio(64).toFixed(2)} x`],
    };
  } finally {
    folder.remove();
  }
}

function fresh(folder: string, filled: string, name: string): string {
  const file = join(folder, `${name}.db`);
  copyFileSync(filled, file);
  return file;
}
