/** A client of `pg`, as far as fences use it: one connection, not a pool. */
export interface PostgresClient {
  // biome-ignore lint/suspicious/noExplicitAny: what pg and its type parameters make of rows and values
  query(text: string, values?: any[]): Promise<{ rows: any[] }>;
}

/** A database of better-sqlite3, as far as fences use it. */
export interface SqliteDatabase {
  prepare(sql: string): {
    get(...values: unknown[]): unknown;
    all(...values: unknown[]): unknown[];
  };
  exec(sql: string): unknown;
}
