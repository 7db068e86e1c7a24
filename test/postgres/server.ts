import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { copyCluster, initCluster } from './cluster.js';
import { serverUser } from './native.js';
import { type Postmaster, startPostmaster } from './postmaster.js';
import { scratchFolder } from './scratch.js';

export interface PostgresOptions {
  /** Settings of the server, over those of the tests: `{ fsync: 'off' }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface StandbyOptions extends PostgresOptions {
  /** Its application name, by which the primary knows it. Default: standby. */
  readonly name?: string;
  /** Whether commits on the primary wait for it from now on. Default: false. */
  readonly synchronous?: boolean;
}

/** A real PostgreSQL on 127.0.0.1 whose processes and files end with this process. */
export interface PostgresServer {
  readonly port: number;
  readonly dataDir: string;
  url(database?: string): string;
  /** Makes an empty database, and answers its URL. */
  createDatabase(name?: string): Promise<string>;
  /** Runs one statement in the database `postgres`. */
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** Fast disconnects clients and writes a checkpoint; immediate does neither, so that the next start has to recover. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  /** Kills every process of the server at once. */
  kill(): Promise<void>;
  /** On the same port and files. */
  start(): Promise<void>;
  /** Copies this server while it runs into one that follows it, and waits until it does. */
  standby(options?: StandbyOptions): Promise<PostgresServer>;
  /** Makes a standby writable, and waits until it is. */
  promote(): Promise<void>;
  /** What the server has logged since it was started last. */
  log(): string;
  /** Ends the server and deletes its files. */
  remove(): Promise<void>;
}

const SETTINGS = {
  max_connections: '100',
  shared_buffers: '32MB',
  wal_level: 'replica',
  // What a standby needs from the time of its copy on.
  wal_keep_size: '256MB',
  max_wal_senders: '8',
};

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const folder = makeFolder();
  const password = randomBytes(18).toString('base64url');
  await initCluster(join(folder, 'data'), folder, password);
  return run(folder, password, { ...SETTINGS, ...options.settings });
}

/** Its socket and its data are in a folder of its own. */
function makeFolder(): string {
  const folder = mkdtempSync(join(scratchFolder(), 'server-'));
  chmodSync(folder, 0o700);
  if (serverUser) chownSync(folder, serverUser.uid, serverUser.gid);
  return folder;
}

async function run(
  folder: string,
  password: string,
  settings: Readonly<Record<string, string>>,
): Promise<PostgresServer> {
  const dataDir = join(folder, 'data');
  const port = await freePort();
  const begin = () => startPostmaster(dataDir, { ...settings, ...listenOn(port, folder) });
  let running: Postmaster | undefined = await begin();

  const url = (database = 'postgres') => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  const end = async (signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL') => {
    const ending = running;
    running = undefined;
    await ending?.end(signal);
  };

  const server: PostgresServer = {
    port,
    dataDir,
    url,
    async createDatabase(name = `test_${randomBytes(6).toString('hex')}`) {
      await server.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`);
      return url(name);
    },
    query: (sql, values) =>
      withClient(
        url(),
        async (client) => (await client.query(sql, values)).rows as Record<string, unknown>[],
      ),
    stop: (mode = 'fast') => end(mode === 'fast' ? 'SIGINT' : 'SIGQUIT'),
    kill: () => end('SIGKILL'),
    async start() {
      running ??= await begin();
    },
    async standby({ name = 'standby', synchronous = false, settings: more } = {}) {
      const copy = makeFolder();
      await withClient(url(), (client) => copyCluster(client, dataDir, join(copy, 'data')));
      const standby = await run(copy, password, {
        ...settings,
        ...more,
        primary_conninfo: `host=127.0.0.1 port=${port} user=postgres password=${password} application_name=${name}`,
      });
      if (synchronous) {
        await server.query(`ALTER SYSTEM SET synchronous_standby_names = ${pg.escapeLiteral(`"${name}"`)}`);
        await server.query('SELECT pg_reload_conf()');
      }
      await until(`${name} follows`, async () => {
        const [row] = await server.query(
          'SELECT state, sync_state FROM pg_stat_replication WHERE application_name = $1',
          [name],
        );
        return row?.state === 'streaming' && (row.sync_state === 'sync') === synchronous;
      });
      return standby;
    },
    async promote() {
      const [row] = await server.query('SELECT pg_promote(true, 20) AS promoted');
      if (row?.promoted !== true) throw new Error(`The standby was not promoted:\n${server.log()}`);
    },
    log: () => running?.log() ?? '',
    async remove() {
      await end('SIGQUIT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return server;
}

function listenOn(port: number, folder: string): Record<string, string> {
  return { listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: folder };
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  // A server that is ended while a query waits is an error of that query alone.
  client.on('error', () => {});
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end().catch(() => {});
  }
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`Waited in vain until ${what}.`);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
