import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { type CaseRef, HoldfastError } from '../../core/index.js';
import type { LedgerDatabase, Row } from '../care/database.js';
import type { Finding } from '../care/inspection.js';
import { LEDGER_TABLES, type LedgerTable } from '../care/tables.js';
import { ofRef, type RefColumns, toRef } from '../rows/keys.js';
import { assertOurs } from './connection.js';
import { sqliteCode, toHoldfastError } from './errors.js';
import { KNOWN_VERSION } from './migrations/index.js';
import { inspectSqlite } from './topology.js';

const BATCH = 200;
const LOCK_WAIT_MS = 5000;

/** @throws ledger_unavailable where there is no file; config_invalid where it is not a ledger */
export function openSqliteDatabase(file: string): LedgerDatabase {
  if (!existsSync(file)) throw new HoldfastError('ledger_unavailable', `There is no ledger file ${file}.`);
  const db = connect(file);
  const count = (table: string, where = '1 = 1'): number =>
    db.prepare<[], number>(`SELECT count(*) FROM ${table} WHERE ${where}`).pluck().get() ?? 0;
  const hasTable = (name: string) => count('sqlite_schema', `type = 'table' AND name = '${name}'`) > 0;

  return {
    engine: 'sqlite',
    schema: guarded(() => {
      const sql = 'SELECT coalesce(max(version), 0) FROM migrations';
      const found = hasTable('migrations') ? (db.prepare<[], number>(sql).pluck().get() ?? 0) : 0;
      return { found, known: KNOWN_VERSION };
    }),
    incarnation: guarded(
      () => db.prepare<[], string>("SELECT value FROM meta WHERE name = 'incarnation'").pluck().get() ?? '',
    ),
    count: guarded(count),
    casesAfter: guarded((last: CaseRef | null, limit: number) =>
      db
        .prepare<RefColumns & { limit: number }, RefColumns>(CASES_AFTER)
        .all({ ...ofRef(last ?? { tenant: '', root: '', caseId: '' }), limit })
        .map(toRef),
    ),
    async frozen(work) {
      db.exec('BEGIN');
      try {
        return await work();
      } finally {
        db.exec('COMMIT');
      }
    },
    async *rows({ name, columns }: LedgerTable) {
      // Kinds have no rowid and audit chains are read as chains; the order of the others is that in which lists show them.
      const order =
        name === 'kinds' ? 'tenant, kind' : name === 'audit' ? 'tenant, root, case_id, seq' : 'rowid';
      const all = db.prepare<[], Row>(`SELECT ${columns.join(', ')} FROM ${name} ORDER BY ${order}`).raw();
      let batch: Row[] = [];
      for (const row of all.iterate()) {
        batch.push(row);
        if (batch.length < BATCH) continue;
        yield batch;
        batch = [];
      }
      yield batch;
    },
    async fill(incarnation, work) {
      db.exec('BEGIN IMMEDIATE');
      try {
        for (const { name } of LEDGER_TABLES) {
          if (count(name) > 0)
            throw new HoldfastError('already_exists', `The ledger is not empty: it has ${name}.`);
        }
        const result = await work(async (table, columns, rows) => {
          const add = db.prepare(
            `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
          );
          for (const row of rows) add.run(...row);
        });
        db.prepare("UPDATE meta SET value = ? WHERE name = 'incarnation'").run(incarnation);
        db.exec('COMMIT');
        return result;
      } catch (error) {
        if (db.inTransaction) db.exec('ROLLBACK');
        throw toHoldfastError(error);
      }
    },
    inspect: guarded(() => inspectSqlite(db)),
    check: async () => damageOf(db),
    async close() {
      db.close();
    },
  };
}

const REF = 'tenant, root, case_id';
const BEHIND = `(${REF}) > (@tenant, @root, @case_id) ORDER BY ${REF} LIMIT @limit`;
const CASES_AFTER = `SELECT * FROM (SELECT ${REF} FROM cases WHERE ${BEHIND})
  UNION SELECT * FROM (SELECT ${REF} FROM audit WHERE seq = 1 AND ${BEHIND}) ORDER BY ${REF} LIMIT @limit`;

/** Opens a ledger file that is there already, as it is. @throws config_invalid, ledger_unavailable */
export function connect(file: string): Database.Database {
  try {
    const db = new Database(file, { fileMustExist: true, timeout: LOCK_WAIT_MS });
    try {
      db.pragma('foreign_keys = ON');
      db.pragma('synchronous = FULL');
      assertOurs(db, file);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  } catch (error) {
    throw toHoldfastError(error);
  }
}

function guarded<A extends unknown[], T>(read: (...args: A) => T): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return read(...args);
    } catch (error) {
      throw toHoldfastError(error);
    }
  };
}

function damageOf(db: Database.Database): Finding[] {
  const damaged = (message: string): Finding => ({ severity: 'unsafe', code: 'damaged', message });
  try {
    const said = db.pragma('quick_check(20)') as { quick_check: string }[];
    const broken = said.filter(({ quick_check }) => quick_check !== 'ok');
    if (broken.length > 0) return broken.map(({ quick_check }) => damaged(`quick_check: ${quick_check}.`));
    const dangling = db.pragma('foreign_key_check') as {
      table: string;
      rowid: number | null;
      parent: string;
    }[];
    return dangling
      .slice(0, 20)
      .map(({ table, rowid, parent }) => damaged(`Row ${rowid} of ${table} refers to no row of ${parent}.`));
  } catch (error) {
    const code = sqliteCode(error);
    if (code === null) throw error;
    return [damaged(`The file cannot be read to its end (${code}).`)];
  }
}
