import { HoldfastError, newId } from '../../core/index.js';
import type { Connections, Session } from './connection.js';
import { sqlState } from './errors.js';
import { KNOWN_VERSION, MIGRATIONS } from './migrations/index.js';

const OURS = { name: 'migrations', text: "SELECT to_regclass('holdfast.migrations') IS NOT NULL AS ours" };
const VERSION = {
  name: 'version',
  text: 'SELECT coalesce(max(version), 0) AS version FROM holdfast.migrations',
};
const RECORD = {
  name: 'record migration',
  text: 'INSERT INTO holdfast.migrations (version, name, applied_at) VALUES ($1, $2, now())',
};
const INCARNATION = {
  name: 'new incarnation',
  text: "INSERT INTO holdfast.meta (name, value) VALUES ('incarnation', $1)",
};

/** How long others that start at the same moment may take, milliseconds. */
const WAIT_MS = 60_000;
const BEGIN = `BEGIN; SET LOCAL statement_timeout = ${WAIT_MS}; SET LOCAL lock_timeout = ${WAIT_MS};
CREATE SCHEMA IF NOT EXISTS holdfast;
CREATE TABLE IF NOT EXISTS holdfast.migrations (version INT PRIMARY KEY, name TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL);
LOCK TABLE holdfast.migrations IN EXCLUSIVE MODE;`;

/** Two that make the same schema or table at once: one of them finds it made. */
const MADE = new Set(['23505', '42P06', '42P07']);

/**
 * Brings the schema to what this version knows, in one transaction, for which others that start wait; a new database gets its
 * incarnation. Where it is not `allowed`, the schema must be what this version knows already.
 * @throws schema_newer with `found` and `known`; config_invalid. The database stays as it was
 */
export async function migrate(connections: Connections, allowed: boolean): Promise<void> {
  await connections.use(async (session) => {
    const known = KNOWN_VERSION;
    const found = await versionIn(session);
    if (found === known) return;
    if (!allowed) {
      const message = `The database has schema ${found} of the ledger; this version needs ${known}.`;
      throw new HoldfastError('config_invalid', message, { data: { found, known } });
    }
    for (let tries = 3; ; tries -= 1) {
      try {
        await bringForward(session);
        return;
      } catch (error) {
        await session.run('ROLLBACK');
        if (tries === 0 || !MADE.has(sqlState(error) ?? '')) throw error;
      }
    }
  });
}

async function bringForward(session: Session): Promise<void> {
  await session.run(BEGIN, WAIT_MS);
  const found = await versionIn(session);
  for (const { version, name, sql } of MIGRATIONS.filter((one) => one.version > found)) {
    await session.run(sql, WAIT_MS);
    await session.query(RECORD, [version, name]);
  }
  if (found === 0) await session.query(INCARNATION, [newId('inc')]);
  await session.run('COMMIT', WAIT_MS);
}

/** @throws schema_newer */
async function versionIn(session: Session): Promise<number> {
  const [state] = await session.query<{ ours: boolean }>(OURS);
  if (state?.ours !== true) return 0;
  const [row] = await session.query<{ version: number }>(VERSION);
  const [found, known] = [row?.version ?? 0, KNOWN_VERSION];
  if (found <= known) return found;
  const message = `The database has schema ${found} of the ledger; this version knows ${known}.`;
  throw new HoldfastError('schema_newer', message, { data: { found, known } });
}
