import Database from 'better-sqlite3';
import { HoldfastError } from '../../core/index.js';

export function sqliteCode(error: unknown): string | null {
  return error instanceof Database.SqliteError ? error.code : null;
}

/** Another connection has the lock; the same attempt can succeed a moment later. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== null && (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED'));
}

/** After these nothing that this connection says can be trusted: a failed fsync may have lost pages that it calls written. */
export function isFatal(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== null && /^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(code);
}

/** What a caller may know: the code. Statement, path and driver text stay in `cause`. */
export function toHoldfastError(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const code = sqliteCode(error);
  if (code === null || code.startsWith('SQLITE_CONSTRAINT')) {
    return new HoldfastError('internal', undefined, { cause: error });
  }
  return new HoldfastError(isBusy(error) ? 'busy' : 'ledger_unavailable', undefined, { cause: error });
}

/** A statement that had to change one row did not: a guard failed inside the transaction that had checked it. */
export function exactlyOne(result: Database.RunResult): void {
  if (result.changes !== 1) throw new HoldfastError('internal', 'An invariant of the ledger does not hold.');
}
