import pg from 'pg';
import { HoldfastError } from '../core/index.js';
import { type FenceSpec, type Fences, postgresFences, sqliteFences } from '../fence/index.js';
import { toHoldfastError as ofPostgres, sqlState } from './postgres/errors.js';
import { connect } from './sqlite/database.js';
import { toHoldfastError as ofSqlite, sqliteCode } from './sqlite/errors.js';
import { sqliteLedgerTables } from './sqlite/own-tables.js';
import { isPostgresUrl, type LedgerTarget } from './target.js';

/** Fences of the database that a ledger is in, while it is open. */
export type OpenFences = Fences & { close(): Promise<void> };

/** Opens the database of a ledger for its fences; nothing is made by opening it. @throws config_invalid, ledger_unavailable */
export async function openFences(target: LedgerTarget, connectMs = 5000): Promise<OpenFences> {
  return isPostgresUrl(target) ? openOnPostgres(target, connectMs) : openOnSqlite(target);
}

async function openOnPostgres(url: string, connectMs: number): Promise<OpenFences> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'holdfast fence',
    connectionTimeoutMillis: connectMs,
  });
  // Each query fails by itself where the connection breaks.
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (error) {
    throw ofPostgres(error);
  }
  const explain = (error: unknown) =>
    /^(?:0A|22|23|25006|42|55000)/.test(sqlState(error) ?? '') ? refusedBy(error) : ofPostgres(error);
  return opened(postgresFences(client), explain, () => client.end());
}

function openOnSqlite(file: string): OpenFences {
  const db = connect(file);
  const explain = (error: unknown) =>
    /^SQLITE_(?:ERROR|CONSTRAINT)/.test(sqliteCode(error) ?? '') ? refusedBy(error) : ofSqlite(error);
  return opened(sqliteFences(db, sqliteLedgerTables()), explain, async () => void db.close());
}

/** The table is the user's, and so is what is in the way of its fence: the database's own words say it best. */
function refusedBy(cause: unknown): HoldfastError {
  return new HoldfastError('usage', `The database refuses it: ${(cause as Error).message}.`, { cause });
}

function opened(
  fences: Fences,
  explain: (error: unknown) => HoldfastError,
  close: () => Promise<void>,
): OpenFences {
  const explained =
    <T>(work: (spec: FenceSpec) => Promise<T>) =>
    async (spec: FenceSpec): Promise<T> => {
      try {
        return await work(spec);
      } catch (error) {
        throw explain(error);
      }
    };
  return {
    sql: explained(fences.sql),
    apply: explained(fences.apply),
    check: explained(fences.check),
    close,
  };
}
