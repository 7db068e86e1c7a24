import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { type FenceSpec, postgresFences } from '../../src/fence/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openPostgresLedger } from '../../src/storage/index.js';
import { createTestDatabase } from '../postgres/database.js';
import { KIND, openCase, ref, TestClock } from '../storage/suite/fixtures.js';

export const SPEC: FenceSpec = {
  table: 'invoices',
  caseColumn: 'case_id',
  tenant: { value: 'acme' },
  root: { value: ref().root },
};

export interface PostgresWorld {
  readonly ledger: LedgerStore;
  readonly clock: TestClock;
  /** The owner of the ledger and of the tables. */
  readonly admin: pg.Client;
  /** May write to the user's tables and present, and may not read the ledger. */
  readonly role: string;
  readonly url: string;
  /** Another connection of plain `pg`, as that role or as the owner. */
  connect(as?: 'role' | 'owner'): Promise<pg.Client>;
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
  const connect = async (as: 'role' | 'owner' = 'role'): Promise<pg.Client> => {
    const url = new URL(database.url);
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
