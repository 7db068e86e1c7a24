import type Database from 'better-sqlite3';
import { HoldfastError, newId } from '../../core/index.js';
import { APPLICATION_ID } from './connection.js';
import { KNOWN_VERSION, MIGRATIONS } from './migrations/index.js';

/**
 * Brings the schema to what this version knows, in one transaction; a new file gets its incarnation.
 * @throws schema_newer with `found` and `known`; the file stays as it was
 */
export function migrate(db: Database.Database, now: string): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    db.exec(`CREATE TABLE IF NOT EXISTS migrations (
      version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT`);
    const found =
      db.prepare<[], number>('SELECT coalesce(max(version), 0) FROM migrations').pluck().get() ?? 0;
    const known = KNOWN_VERSION;
    if (found > known) {
      const message = `The ledger file has schema ${found}; this version knows ${known}.`;
      throw new HoldfastError('schema_newer', message, { data: { found, known } });
    }
    const record = db.prepare('INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)');
    for (const { version, name, sql } of MIGRATIONS.filter((one) => one.version > found)) {
      db.exec(sql);
      record.run(version, name, now);
    }
    if (found === 0) {
      db.pragma(`application_id = ${APPLICATION_ID}`);
      db.prepare("INSERT INTO meta (name, value) VALUES ('incarnation', ?)").run(newId('inc'));
    }
    db.exec('COMMIT');
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
