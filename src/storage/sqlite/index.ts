import { type Clock, systemClock, toUtc } from '../../core/index.js';
import type { LedgerStore } from '../../ledger/index.js';
import { createStore } from '../store.js';
import type { OnWarning } from './checkpoints.js';
import { connect } from './connection.js';
import { sqliteEngine } from './engine.js';
import { toHoldfastError } from './errors.js';
import { whileBusy } from './lock.js';
import { migrate } from './migrate.js';

export interface SqliteLedgerOptions {
  /** Path of the database; made (mode 0600, in a folder of mode 0700) where it does not exist. */
  readonly file: string;
  /** The database's clock. Default: the system's. */
  readonly clock?: Clock;
  /** How long a write waits for other processes' writes, milliseconds; then it is `busy`. Default 5000. */
  readonly lockWaitMs?: number;
  /** How many writes may wait for their transaction; one more is `busy` at once. Default 10000. */
  readonly maxWaiting?: number;
  /** Hears of what an operator should look at, such as a reader that keeps the write-ahead log growing. */
  readonly onWarning?: OnWarning;
}

/**
 * Opens a ledger in one SQLite file, which several processes on one machine may share.
 * @throws config_invalid, schema_newer, ledger_unavailable, busy
 */
export async function openSqliteLedger(options: SqliteLedgerOptions): Promise<LedgerStore> {
  const { file, clock = systemClock, lockWaitMs = 5000, maxWaiting = 10_000 } = options;
  const onWarning = options.onWarning ?? (() => undefined);
  const deadline = performance.now() + lockWaitMs;
  try {
    const db = await connect(file, deadline);
    try {
      await whileBusy(() => migrate(db, toUtc(clock.now())), deadline);
      return createStore(sqliteEngine(db, { clock, lockWaitMs, maxWaiting, onWarning }));
    } catch (error) {
      db.close();
      throw error;
    }
  } catch (error) {
    throw toHoldfastError(error);
  }
}
