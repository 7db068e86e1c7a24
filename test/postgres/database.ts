import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

export interface TestDatabase {
  readonly url: string;
  /** Runs one statement in it. */
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  drop(): Promise<void>;
}

/** An empty database of its own, in the server that all test files share. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const shared = inject('postgresUrl');
  const name = `test_${randomBytes(8).toString('hex')}`;
  await query(shared, `CREATE DATABASE ${name}`);
  const url = new URL(shared);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    query: (sql, values) => query(url.href, sql, values),
    drop: async () => {
      await query(shared, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
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
