import type { Clock } from '../../core/index.js';
import type { LedgerStore } from '../../ledger/index.js';
import { createStore } from '../store.js';
import { openConnections } from './connection.js';
import { postgresEngine } from './engine.js';
import { toHoldfastError } from './errors.js';
import { migrate } from './migrate.js';
import type { TimelineInfo } from './timeline.js';

export type { TimelineInfo } from './timeline.js';

export interface PostgresLedgerOptions {
  /** `postgres://user:password@host:port/database`; the ledger is the schema `holdfast` in it. */
  readonly url: string;
  /** Whether the schema may be made or brought forward. Default true. */
  readonly migrate?: boolean;
  /** Instead of the database's clock. */
  readonly clock?: Clock;
  /** Most connections of this process. Default 8. */
  readonly connections?: number;
  /** Most calls that wait; the next is `busy` at once. Default 1024. */
  readonly waiting?: number;
  /** How long a connection may take to be made or to become free, milliseconds. Default 5000. */
  readonly connectMs?: number;
  /** How long a statement may take, milliseconds. Default 10000. */
  readonly statementMs?: number;
  /** How long a write waits for what others hold, milliseconds; then it is `busy`. Default 5000. */
  readonly lockMs?: number;
  /** How long a commit may wait for a synchronous standby, milliseconds; then its outcome is unknown. Default 10000. */
  readonly replicationMs?: number;
  /** How long it is tried to find out what became of a write whose answer was lost, milliseconds. Default 15000. */
  readonly settleMs?: number;
  /** Awaited before a server that took over, on a newer timeline, is used; if it rejects, the server is not. */
  readonly onTimeline?: (info: TimelineInfo) => Promise<void>;
}

/** What holds where nothing else is said. */
export const DEFAULTS = {
  connections: 8,
  waiting: 1024,
  connectMs: 5_000,
  statementMs: 10_000,
  lockMs: 5_000,
  replicationMs: 10_000,
};

/**
 * Batches of writes, and of reads, on their way at once: more of them share less. Commands that wait for a case which somebody else
 * holds leave connections to all others.
 */
export const LIMITS = { lanes: 2, patient: 2, waiting: DEFAULTS.waiting, settleMs: 15_000 };

/**
 * Opens a ledger in a PostgreSQL database, 15 or later, which many processes may share.
 * @throws config_invalid, schema_newer, ledger_unavailable, busy
 */
export async function openPostgresLedger(options: PostgresLedgerOptions): Promise<LedgerStore> {
  const connections = openConnections({ ...DEFAULTS, ...options });
  try {
    await migrate(connections, options.migrate ?? true);
    return createStore(postgresEngine(connections, { ...LIMITS, ...options }));
  } catch (error) {
    await connections.close().catch(() => undefined);
    throw toHoldfastError(error);
  }
}
