import Database from 'better-sqlite3';
import { type ErrorCode, type FieldError, HoldfastError } from '../../core/index.js';

export function sqliteCode(error: unknown): string | null {
  return error instanceof Database.SqliteError ? error.code : null;
}

/** Another connection has the lock; the same attempt can succeed a moment later. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  if (code === null) return error instanceof HoldfastError && error.code === 'busy';
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}

/**
 * There was no room, or a write failed. In a commit this is a frame of the write-ahead log: the last one is what commits, so without
 * it nothing did, and SQLite has put the connection back to where it was.
 */
export function isCutShort(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_WRITE';
}

/** After these nothing that this connection says can be trusted: a failed fsync may have lost pages that it calls written. */
export function isFatal(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== null && !isCutShort(error) && /^SQLITE_(IOERR|CORRUPT|NOTADB|READONLY|CANTOPEN)/.test(code);
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

/** An error as it crosses threads. */
export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly fields: readonly FieldError[];
  readonly data: HoldfastError['data'];
  readonly cause: string | null;
}

export function packError({ code, message, fields, data, cause }: HoldfastError): Failure {
  return { code, message, fields, data, cause: cause === undefined ? null : String(cause) };
}

export function unpackError({ code, message, fields, data, cause }: Failure): HoldfastError {
  return new HoldfastError(code, message, { fields, data, ...(cause === null ? {} : { cause }) });
}

/** A statement that had to change one row did not: a guard failed inside the transaction that had checked it. */
export function exactlyOne(result: Database.RunResult): void {
  if (result.changes !== 1) throw new HoldfastError('internal', 'An invariant of the ledger does not hold.');
}
