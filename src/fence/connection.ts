/** A client of `pg`, as far as fences use it: one connection, not a pool. */
export interface PostgresClient {
  /** Runs one statement, inside whatever transaction is open. */
  // biome-ignore lint/suspicious/noExplicitAny: what pg and its type parameters make of rows and values
  query(text: string, values?: any[]): Promise<{ rows: any[] }>;
}

/** A database of better-sqlite3, as far as fences use it. */
export interface SqliteDatabase {
  /** Compiles one statement. */
  prepare(sql: string): {
    /** The first row. */
    get(...values: unknown[]): unknown;
    /** All rows. */
    all(...values: unknown[]): unknown[];
  };
  /** Runs statements that answer nothing. */
  exec(sql: string): unknown;
}
