import Database from 'better-sqlite3';
import { migrate } from './migrate.js';

/** Names of the tables that the migrations make, asked of the schema itself: a list by hand would miss the next one. */
export function sqliteLedgerTables(): ReadonlySet<string> {
  const db = new Database(':memory:');
  try {
    migrate(db, '');
    return new Set(
      db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all(),
    );
  } finally {
    db.close();
  }
}
