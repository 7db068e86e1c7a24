/**
 * What a fence costs: the time of a transaction with one INSERT, commit included, into a fenced table by that into a table without,
 * on both databases in one run. Both sorts take turns, so that whatever else the machine does meets both.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import pg from 'pg';
import { postgresFences, present, sqliteFences } from '../src/fence/index.js';
import type { LedgerStore } from '../src/ledger/index.js';
import { openPostgresLedger, openSqliteLedger, sqliteLedgerTables } from '../src/storage/index.js';
import { startPostgres } from '../test/postgres/server.js';

const ROUNDS = Number(process.env.ROUNDS ?? 1500);
const OWNER = 'https://triage.example/agents/triage';
const ref = { tenant: 'acme', root: 'https://triage.example', caseId: 'CASE-1' };
const presentation = { ref, epoch: 1, writer: OWNER };
const spec = {
  table: 'fenced',
  caseColumn: 'case_id',
  tenant: { value: ref.tenant },
  root: { value: ref.root },
};

type Way = readonly [name: string, write: (id: number) => void | Promise<void>];

const median = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;

/** Prints for each pair of ways the medians, milliseconds, and their ratio. */
async function compare(title: string, pairs: readonly (readonly [plain: Way, fenced: Way])[]): Promise<void> {
  const ways = pairs.flat();
  const times = new Map(ways.map(([name]) => [name, [] as number[]]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, write] of round % 2 === 0 ? ways : [...ways].reverse()) {
      const from = performance.now();
      await write(round);
      if (round >= ROUNDS / 10) times.get(name)?.push(performance.now() - from);
    }
  }
  for (const [[plain], [fenced]] of pairs) {
    const [without, withFence] = [median(times.get(plain) ?? []), median(times.get(fenced) ?? [])];
    const ratio = (withFence / without).toFixed(2);
    console.log(
      `${title}: ${plain} ${without.toFixed(3)} ms, ${fenced} ${withFence.toFixed(3)} ms, ratio ${ratio}`,
    );
  }
}

async function openCase(ledger: LedgerStore): Promise<void> {
  await ledger.putKind('acme', {
    kind: 'refund',
    systemOfRecord: 'billing',
    mode: 'shared',
    contracts: [],
    policy: { caps: {}, prohibitions: [], operations: {} },
    limits: { maxHops: 2, maxTasks: 5, acceptWithinMs: 60_000, effectLimitMs: 30_000 },
  });
  await ledger.openCase({ ref, kind: 'refund', owner: OWNER, epoch: 1, actor: OWNER });
}

async function sqlite(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  const file = join(folder, 'ledger.db');
  const ledger = await openSqliteLedger({ file });
  await openCase(ledger);
  const db = new Database(file);
  db.pragma('synchronous = FULL');
  for (const table of ['plain', 'fenced']) {
    db.exec(`CREATE TABLE ${table} (id INTEGER PRIMARY KEY, case_id TEXT NOT NULL, amount TEXT NOT NULL)`);
  }
  await sqliteFences(db, sqliteLedgerTables()).apply(spec);
  const plain = db.prepare('INSERT INTO plain (id, case_id, amount) VALUES (?, ?, ?)');
  const fenced = db.prepare('INSERT INTO fenced (id, case_id, amount, holdfast_token) VALUES (?, ?, ?, ?)');
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  await compare('SQLite', [
    [
      [
        'BEGIN, INSERT, COMMIT',
        (id) => {
          begin.run();
          plain.run(id, ref.caseId, '10.00');
          commit.run();
        },
      ],
      [
        'BEGIN, present, INSERT, COMMIT',
        (id) => {
          begin.run();
          const { token } = present(db, presentation);
          fenced.run(id, ref.caseId, '10.00', token);
          commit.run();
        },
      ],
    ],
  ]);
  db.close();
  await ledger.close();
  rmSync(folder, { recursive: true });
}

async function postgres(): Promise<void> {
  const server = await startPostgres();
  const client = new pg.Client({ connectionString: server.url() });
  try {
    await client.connect();
    await client.query(`CREATE TABLE plain (id int, case_id text NOT NULL, amount numeric NOT NULL, way int, PRIMARY KEY (id, way));
      CREATE TABLE fenced (LIKE plain INCLUDING ALL)`);
    const ledger = await openPostgresLedger({ url: server.url() });
    await openCase(ledger);
    await ledger.close();
    await postgresFences(client).apply(spec);
    const insert = (table: string, id: number, way: number) =>
      client.query({
        name: `insert-${table}`,
        text: `INSERT INTO ${table} (id, case_id, amount, way) VALUES ($1, $2, $3, $4)`,
        values: [id, ref.caseId, '10.00', way],
      });
    await compare('PostgreSQL', [
      [
        [
          'BEGIN, INSERT, COMMIT',
          async (id) => {
            await client.query('BEGIN');
            await insert('plain', id, 1);
            await client.query('COMMIT');
          },
        ],
        [
          'BEGIN, present, INSERT, COMMIT',
          async (id) => {
            await client.query('BEGIN');
            await present(client, presentation);
            await insert('fenced', id, 1);
            await client.query('COMMIT');
          },
        ],
      ],
      [
        [
          'one INSERT',
          async (id) => {
            await insert('plain', id, 2);
          },
        ],
        [
          'one INSERT that presents',
          async (id) => {
            await client.query({
              name: 'presenting',
              text: `INSERT INTO fenced (id, case_id, amount, way)
                SELECT $1, $2, $3, 2 FROM holdfast.present($4, $5, $2, $6, $7)`,
              values: [id, ref.caseId, '10.00', ref.tenant, ref.root, 1, OWNER],
            });
          },
        ],
      ],
    ]);
  } finally {
    await client.end();
    await server.remove();
  }
}

await sqlite();
await postgres();
