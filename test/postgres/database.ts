import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

export interface TestDatabase {
  readonly url: string;
  /** Runs one statement in it. */
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** Copies it as it is, while nobody is connected; `putBack` brings that copy back in the place of what is there. */
  keep(): Promise<void>;
  putBack(): Promise<void>;
  /** Makes an empty one in its place. */
  replace(): Promise<void>;
  drop(): Promise<void>;
}

/** An empty database of its own, in the server that all test files share. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const shared = inject('postgresUrl');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const make = (made: string, from = 'template1') =>
    query(shared, `CREATE DATABASE ${made} TEMPLATE ${from}`);
  const drop = (dropped: string) => query(shared, `DROP DATABASE IF EXISTS ${dropped} WITH (FORCE)`);
  const made = [name];
  let kept = name;
  // What is not needed any more goes at the end, all at once: each drop waits for a checkpoint, which they share.
  const putAway = async () => {
    const away = `${name}_${made.length}`;
    await query(shared, `ALTER DATABASE ${name} RENAME TO ${away}`);
    made.push(away);
  };
  await make(name);
  const url = new URL(shared);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    query: (sql, values) => query(url.href, sql, values),
    async keep() {
      kept = `${name}_${made.length}`;
      await make(kept, name);
      made.push(kept);
    },
    async putBack() {
      await putAway();
      await make(name, kept);
    },
    async replace() {
      await putAway();
      await make(name);
    },
    async drop() {
      await Promise.all(made.map(drop));
    },
  };
}

async function query(url: string, sql: string, values?: unknown[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end().catch(() => {});
  }
}
