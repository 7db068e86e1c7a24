import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { type FenceSpec, postgresFences, type SqliteDatabase, sqliteFences } from '../../src/fence/index.js';
import type { LedgerStore, OfferRow } from '../../src/ledger/index.js';
import { openPostgresLedger, sqliteLedgerTables } from '../../src/storage/index.js';
import { createTestDatabase } from '../postgres/database.js';
import { intend, KIND, openCase, ref, TestClock, TRIAGE } from '../storage/suite/fixtures.js';
import { SEPARATE, WITHDRAWN } from '../storage/suite/parties.js';

export const SPEC: FenceSpec = {
  table: 'invoices',
  caseColumn: 'case_id',
  tenant: { value: 'acme' },
  root: { value: ref().root },
};

/** Fences of a file, as the command opens them. */
export const fencesOf = (db: SqliteDatabase) => sqliteFences(db, sqliteLedgerTables());

export interface PostgresWorld {
  readonly ledger: LedgerStore;
  readonly clock: TestClock;
  /** The owner of the ledger and of the tables. */
  readonly admin: pg.Client;
  /** May write to the user's tables and present, and may not read the ledger. */
  readonly role: string;
  readonly url: string;
  /** Another connection of plain `pg`, as that role or as the owner; to another database of the server where it is given. */
  connect(as?: 'role' | 'owner', to?: string): Promise<pg.Client>;
  /** Empties the ledger and the table of invoices, and opens CASE-1 and CASE-2, owned by triage at epoch 3. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** A ledger on PostgreSQL and a user's fenced table of invoices beside it. */
export async function openPostgresWorld(): Promise<PostgresWorld> {
  const database = await createTestDatabase();
  const clock = new TestClock();
  const ledger = await openPostgresLedger({ url: database.url, clock });
  await ledger.putKind('acme', KIND);
  const role = `app_${randomBytes(6).toString('hex')}`;
  const clients: pg.Client[] = [];
  const connect = async (as: 'role' | 'owner' = 'role', to = database.url): Promise<pg.Client> => {
    const url = new URL(to);
    if (as === 'role') Object.assign(url, { username: role, password: 'secret' });
    const client = new pg.Client({ connectionString: url.href, connectionTimeoutMillis: 10_000 });
    client.on('error', () => {});
    await client.connect();
    clients.push(client);
    return client;
  };
  const admin = await connect('owner');
  await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret';
    CREATE TABLE invoices (id int PRIMARY KEY, case_id text, amount numeric NOT NULL DEFAULT 0);
    GRANT ALL ON invoices TO ${role}`);
  return {
    ledger,
    clock,
    admin,
    role,
    url: database.url,
    connect,
    async reset() {
      // What keeps history, and the fence, are triggers: here they stand aside once.
      await admin.query(`ALTER TABLE invoices DISABLE TRIGGER ALL; SET session_replication_role = replica;
        TRUNCATE invoices, holdfast.cases, holdfast.decisions, holdfast.tasks, holdfast.audit, holdfast.audit_heads,
          holdfast.quarantines CASCADE;
        SET session_replication_role = origin`);
      await postgresFences(admin).apply({ ...SPEC, role });
      await openCase(ledger, 'CASE-1');
      await openCase(ledger, 'CASE-2');
    },
    async close() {
      await ledger.close();
      await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
      await Promise.all(clients.map((client) => client.end()));
      await database.drop();
    },
  };
}

/** The statement by which a plain client presents. */
export function presentSql(epoch: number, writer: string, caseId = 'CASE-1'): string {
  return `SELECT holdfast.present('acme', '${ref().root}', '${caseId}', ${epoch}, '${writer}')`;
}

/** Waits until a statement of this text waits for a lock. */
export async function untilWaiting(watcher: pg.Client, text: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const { rows } = await watcher.query(
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1",
      [`%${text}%`],
    );
    if (rows.length > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`nothing waits: ${text}`);
}

/** A case of triage's at epoch 3 which goes, where it goes, to a receiver with a ledger of its own. */
export const ACROSS = ref('CASE-ACROSS');

export async function openAcross(ledger: LedgerStore): Promise<void> {
  await ledger.putKind('acme', SEPARATE);
  await ledger.openCase({ ref: ACROSS, kind: SEPARATE.kind, owner: TRIAGE, epoch: 3, actor: TRIAGE });
}

/** The intent of its owner to hand it over. */
export function intendAcross(ledger: LedgerStore, clock: TestClock, attempt = 1): Promise<OfferRow> {
  return ledger.intendOffer(intend(clock, { ref: ACROSS, effects: [], attempt }));
}

/** What the receiver's tombstone does to the offer. */
export function closeAcross(ledger: LedgerStore, { key }: OfferRow): Promise<OfferRow> {
  const tombstone = { verdict: 'tombstone', code: 'withdrawn', digest: null } as const;
  return ledger.closeOffer({ key, ...tombstone, answer: WITHDRAWN, expired: false });
}
