import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openPostgresLedger, openSqliteLedger } from '../../src/storage/index.js';
import { type PostgresOptions, type PostgresServer, startPostgres } from '../postgres/server.js';

/** A database for one ledger, as the crash tests need it. */
export interface CrashDatabase {
  readonly name: string;
  /** What a configuration says under `ledger`. */
  readonly ledger: string;
  open(): Promise<LedgerStore>;
  close(): Promise<void>;
}

export interface PostgresDatabase extends CrashDatabase {
  readonly server: PostgresServer;
}

export async function sqliteDatabase(): Promise<CrashDatabase> {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-crash-sqlite-'));
  const file = join(dir, 'ledger.db');
  return {
    name: 'SQLite',
    ledger: file,
    open: () => openSqliteLedger({ file }),
    close: () => rm(dir, { recursive: true, force: true }),
  };
}

/** In a server of its own, which a test may stop. */
export async function postgresDatabase(options: PostgresOptions = {}): Promise<PostgresDatabase> {
  const server = await startPostgres(options);
  const url = await server.createDatabase('ledger');
  return {
    name: 'PostgreSQL',
    ledger: url,
    server,
    open: () => openPostgresLedger({ url }),
    close: () => server.remove(),
  };
}

/** A database for each of two ledgers. */
export interface TwoDatabases {
  readonly name: string;
  readonly triage: CrashDatabase;
  readonly billing: CrashDatabase;
  close(): Promise<void>;
}

export async function sqliteDatabases(): Promise<TwoDatabases> {
  const [triage, billing] = [await sqliteDatabase(), await sqliteDatabase()];
  const close = async () => void (await Promise.all([triage.close(), billing.close()]));
  return { name: triage.name, triage, billing, close };
}

/** On one server. */
export async function postgresDatabases(): Promise<TwoDatabases> {
  const triage = await postgresDatabase();
  const url = await triage.server.createDatabase('billing');
  const billing = { ...triage, ledger: url, open: () => openPostgresLedger({ url }) };
  return { name: triage.name, triage, billing, close: () => triage.close() };
}
