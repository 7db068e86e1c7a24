import pg from 'pg';
import { HoldfastError, isHoldfastError } from '../../core/index.js';
import { faultPoint } from '../../faults/index.js';
import { isRolledBack, toHoldfastError } from './errors.js';
import { decodeJson, decodeText, encodeText } from './text.js';
import { type TimelineInfo, timelines } from './timeline.js';

export interface ConnectionOptions {
  readonly url: string;
  /** Most connections of this process. */
  readonly connections: number;
  /** Most calls that wait for one; the next is `busy` at once. */
  readonly waiting: number;
  readonly connectMs: number;
  readonly statementMs: number;
  readonly lockMs: number;
  /** How long a commit may wait for a synchronous standby, milliseconds. */
  readonly replicationMs: number;
  readonly onTimeline?: (info: TimelineInfo) => Promise<void>;
}

/** A statement that every connection prepares once, under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export type Row = Record<string, unknown>;

/** One connection, while it is lent. */
export interface Session {
  query<R extends object = Row>(statement: Statement, values?: readonly unknown[]): Promise<R[]>;
  /**
   * The same for a statement whose commit counts: a warning, such as that of a cancelled wait for a standby, is an error, since the
   * commit may be lost with the server that made it.
   */
  commit<R extends object = Row>(statement: Statement, values?: readonly unknown[]): Promise<R[]>;
  /** Runs a script. */
  run(sql: string, limitMs?: number): Promise<void>;
}

export interface Connections {
  /** Lends a connection. One whose state is not known after an error is not used again. */
  use<T>(work: (session: Session) => Promise<T>): Promise<T>;
  /** Closes the connections that nobody uses, since the server may have been another when they were made. */
  renew(): void;
  close(): Promise<void>;
}

/** The server's own limit ends a statement first; this one is for a server that does not answer. */
const ANSWER_MS = 2_000;

export function openConnections(options: ConnectionOptions): Connections {
  const { url, connections, waiting, connectMs, statementMs, lockMs, replicationMs } = options;
  const config: pg.ClientConfig = {
    connectionString: url,
    application_name: 'holdfast',
    connectionTimeoutMillis: connectMs,
    statement_timeout: statementMs,
    lock_timeout: lockMs,
    idle_in_transaction_session_timeout: statementMs,
    query_timeout: statementMs + ANSWER_MS,
    keepAlive: true,
    options: '-c default_transaction_isolation=read\\ committed',
    types: { getTypeParser: parserOf },
  };
  const check = timelines(options.onTimeline, () => renew());
  const verify = (client: pg.PoolClient, done: (error?: Error) => void) =>
    void check(client).then(() => done(), done);
  const open = () => {
    const made = new pg.Pool({
      ...config,
      max: connections,
      idleTimeoutMillis: 60_000,
      verify,
    });
    // A connection that breaks while idle is the pool's to drop; while lent, the statement it carries fails. Neither is more than that.
    made.on('error', () => {});
    made.on('connect', (client) => client.on('error', () => {}));
    return made;
  };
  let pool = open();
  let closed = false;

  const renew = (): void => {
    const old = pool;
    pool = open();
    void old.end().catch(() => {});
  };

  const lend = async (): Promise<pg.PoolClient> => {
    for (let again = 1; ; again -= 1) {
      if (closed) throw new HoldfastError('ledger_unavailable');
      if (pool.waitingCount >= waiting) throw new HoldfastError('busy');
      const from = pool;
      try {
        return await from.connect();
      } catch (error) {
        if (isHoldfastError(error)) throw error;
        // Who waited for a connection of a pool that was given up waits for one of the next.
        if (from !== pool && again > 0) continue;
        const exhausted = from.totalCount - from.idleCount >= connections;
        throw exhausted ? new HoldfastError('busy', undefined, { cause: error }) : error;
      }
    }
  };

  /** Ends the statement of a connection that does not answer, from another one; whatever becomes of that. */
  const cancel = async (processId: number): Promise<void> => {
    const client = new pg.Client(config);
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query('SELECT pg_cancel_backend($1)', [processId]);
    } catch {
      // Nobody there to be told.
    } finally {
      void client.end().catch(() => {});
    }
  };

  const sessionOf = (client: pg.PoolClient): Session => {
    const query = async <R extends object>(
      statement: Statement,
      values: readonly unknown[] = [],
      more = {},
    ) => (await client.query<R>({ ...statement, values: values.map(encoded), ...more })).rows;
    return {
      query,
      async commit<R extends object>(statement: Statement, values: readonly unknown[] = []) {
        let warning: string | undefined;
        const listen = (notice: { message?: string | undefined }) => {
          warning = notice.message ?? '';
        };
        client.on('notice', listen);
        try {
          faultPoint('L3.audited');
          const answer = query<R>(statement, values, { query_timeout: statementMs + replicationMs });
          faultPoint('L4.committing');
          const rows = await answer;
          faultPoint('L5.committed');
          if (warning !== undefined) throw new Error(warning);
          return rows;
        } catch (error) {
          const { processID } = client as unknown as { processID?: number };
          if (!isRolledBack(error) && processID !== undefined) await cancel(processID);
          throw error;
        } finally {
          client.off('notice', listen);
        }
      },
      async run(sql, limitMs = statementMs + ANSWER_MS) {
        await client.query({ text: sql, ...{ query_timeout: limitMs } });
      },
    };
  };

  return {
    async use<T>(work: (session: Session) => Promise<T>): Promise<T> {
      const client = await lend().catch((error: unknown) => {
        // Nothing was sent.
        throw toHoldfastError(error);
      });
      let broken = true;
      try {
        const result = await work(sessionOf(client));
        broken = false;
        return result;
      } catch (error) {
        broken = !isRolledBack(error);
        throw error;
      } finally {
        client.release(broken);
      }
    },
    renew,
    async close(): Promise<void> {
      if (closed) return;
      closed = true;
      await pool.end().catch((error: unknown) => {
        throw toHoldfastError(error);
      });
    },
  };
}

const encoded = (value: unknown): unknown => (typeof value === 'string' ? encodeText(value) : value);

const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  // int8: whole numbers of ours stay below 2^53
  20: Number,
  25: decodeText,
  114: decodeJson,
  3802: decodeJson,
};

function parserOf(oid: number, format?: 'text' | 'binary') {
  const own = format === 'binary' ? undefined : PARSERS[oid];
  return own ?? pg.types.getTypeParser(oid, format as 'text');
}
