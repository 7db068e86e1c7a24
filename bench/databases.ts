import type { LedgerStore } from '../src/ledger/index.js';
import { type PostgresServer, startPostgres } from '../test/postgres/server.js';
import { storage } from './built.js';

/** A PostgreSQL of our own on 127.0.0.1, with every commit synced, and with room for the connections of all that is measured on it. */
export function startDatabase(): Promise<PostgresServer> {
  return startPostgres({
    settings: { shared_buffers: '256MB', max_wal_size: '2GB', max_connections: '300' },
  });
}

/** A ledger in a database of its own as `fill` leaves it. Filling does not wait for the disk, because it is not what is measured. */
export async function filledPostgres<T>(
  server: PostgresServer,
  fill: (ledger: LedgerStore) => Promise<T>,
): Promise<{ readonly url: string; readonly filled: T }> {
  const url = await server.createDatabase();
  await setSync(server, 'off');
  const ledger = await storage.openLedger(url);
  const filled = await fill(ledger);
  await ledger.close();
  await server.query('CHECKPOINT');
  await setSync(server, 'on');
  return { url, filled };
}

async function setSync(server: PostgresServer, value: 'on' | 'off'): Promise<void> {
  await server.query(`ALTER SYSTEM SET synchronous_commit = ${value}`);
  await server.query('SELECT pg_reload_conf()');
}

/** An exact copy of a database that nobody is connected to. */
export async function copyDatabase(server: PostgresServer, url: string, name: string): Promise<string> {
  await server.query(`CREATE DATABASE ${name} TEMPLATE ${new URL(url).pathname.slice(1)}`);
  return server.url(name);
}
