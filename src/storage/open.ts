import type { Clock } from '../core/index.js';
import type { LedgerStore } from '../ledger/index.js';
import type { LedgerDatabase } from './care/database.js';
import { openPostgresDatabase } from './postgres/database.js';
import { openPostgresLedger, type PostgresLedgerOptions } from './postgres/index.js';
import { openSqliteDatabase } from './sqlite/database.js';
import { openSqliteLedger, type SqliteLedgerOptions } from './sqlite/index.js';
import { isPostgresUrl, type LedgerTarget } from './target.js';

export interface LedgerOptions {
  /** The ledger's clock. Default: the system's for SQLite, the database's own for PostgreSQL. */
  readonly clock?: Clock;
  /** For a file of SQLite. */
  readonly sqlite?: Omit<SqliteLedgerOptions, 'file' | 'clock'>;
  /** For a database of PostgreSQL. */
  readonly postgres?: Omit<PostgresLedgerOptions, 'url' | 'clock'>;
}

/**
 * Opens the ledger that a target names: an SQLite file, or a PostgreSQL database. Its schema is made, or brought up.
 * @throws config_invalid, schema_newer, ledger_unavailable, busy
 */
export function openLedger(target: LedgerTarget, options: LedgerOptions = {}): Promise<LedgerStore> {
  const { postgres, sqlite, ...common } = options;
  return isPostgresUrl(target)
    ? openPostgresLedger({ url: target, ...postgres, ...common })
    : openSqliteLedger({ file: target, ...sqlite, ...common });
}

/** Opens the database below a ledger, and leaves it as it is. @throws config_invalid, ledger_unavailable */
export async function openDatabase(
  target: LedgerTarget,
  options: LedgerOptions = {},
): Promise<LedgerDatabase> {
  return isPostgresUrl(target)
    ? openPostgresDatabase(target, options.postgres?.connectMs ?? 5000)
    : openSqliteDatabase(target);
}
