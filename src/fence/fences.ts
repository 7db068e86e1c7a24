import type { PostgresClient, SqliteDatabase } from './connection.js';
import { postgresFenceSql } from './postgres.js';
import { assertTable, checkPostgresFence } from './postgres-check.js';
import type { FenceReport } from './report.js';
import { checkSpec, type FenceSpec, ledgersOwn } from './spec.js';
import { sqliteFence } from './sqlite.js';
import { checkSqliteFence } from './sqlite-check.js';

/** What is done with the fence of one table, in one database. */
export interface Fences {
  /** The SQL to run; again, it changes nothing. @throws usage */
  sql(spec: FenceSpec): Promise<string>;
  /** Runs it in one transaction. @throws usage */
  apply(spec: FenceSpec): Promise<void>;
  /** Looks for what is wrong with it. @throws usage */
  check(spec: FenceSpec): Promise<FenceReport>;
}

/** Fences in PostgreSQL, over one connection. */
export function postgresFences(client: PostgresClient): Fences {
  return {
    async sql(spec) {
      return postgresFenceSql(spec);
    },
    async apply(spec) {
      const sql = postgresFenceSql(spec);
      await client.query('BEGIN');
      try {
        await assertTable(client, checkSpec(spec));
        await client.query(sql);
        await client.query('COMMIT');
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      }
    },
    check: (spec) => checkPostgresFence(client, spec),
  };
}

/** Fences in the ledger's SQLite file. A fence on one of `own`, the ledger's tables, would keep the ledger itself from being written. */
export function sqliteFences(db: SqliteDatabase, own: ReadonlySet<string>): Fences {
  const assertNotOwn = (spec: FenceSpec): FenceSpec => {
    if (own.has(spec.table)) throw ledgersOwn();
    return spec;
  };
  return {
    sql: async (spec) => sqliteFence(db, assertNotOwn(spec)).sql,
    async apply(spec) {
      db.exec('BEGIN IMMEDIATE');
      try {
        db.exec(sqliteFence(db, assertNotOwn(spec)).sql);
        db.exec('COMMIT');
      } catch (error) {
        db.exec('ROLLBACK');
        throw error;
      }
    },
    check: async (spec) => checkSqliteFence(db, assertNotOwn(spec)),
  };
}
