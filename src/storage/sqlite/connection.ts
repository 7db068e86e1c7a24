import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { HoldfastError } from '../../core/index.js';
import { sqliteCode } from './errors.js';
import { whileBusy } from './lock.js';

/** `HOLD`, in the header of every file that is ours. */
export const APPLICATION_ID = 0x484f4c44;

/** Earlier versions can lose a committed transaction when two connections reset the WAL at once. */
const SQLITE_MIN = [3, 51, 3] as const;

const PAGE_BYTES = 4096;

/** A write-ahead log that a long reader made larger is cut back to this once the reader is gone. */
const WAL_KEPT_BYTES = 16 * 1024 * 1024;

/** Above this, bytes, checking every page at each start would cost seconds; `holdfast audit verify` still reads all entries. */
const QUICK_CHECK_MAX = 64 * 1024 * 1024;

/**
 * Opens the file, or makes it readable by its owner alone, and sees to it that a commit is on the disk when it says so.
 * @throws config_invalid where the file is another application's or no database; ledger_unavailable
 */
export async function connect(file: string, deadline: number): Promise<Database.Database> {
  createPrivate(file);
  return attach(file, deadline, assertSound);
}

/** The same for a file that is there, and whose pages were checked when this process opened it. */
export async function attach(
  file: string,
  deadline: number,
  check: (db: Database.Database) => void = () => undefined,
): Promise<Database.Database> {
  const db = new Database(file, { timeout: 0, fileMustExist: true });
  try {
    // Any statement reads the schema first, and finds it locked while another process makes the same file.
    await whileBusy(() => assertOurs(db, file), deadline);
    await whileBusy(() => assertVersion(db), deadline);
    await whileBusy(() => configure(db), deadline);
    await whileBusy(() => check(db), deadline);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Which file a path named when the ledger was opened. */
export interface Place {
  readonly file: string;
  readonly device: bigint;
  readonly inode: bigint;
}

export function placeOf(file: string): Place {
  const { dev, ino } = statSync(file, { bigint: true });
  return { file, device: dev, inode: ino };
}

/**
 * Throws once the path no longer names the file that was opened: SQLite goes on writing to a file that was deleted or replaced, where
 * nobody will ever read it, while another process may be making another history under the path.
 * @throws ledger_unavailable
 */
export function assertInPlace({ file, device, inode }: Place): void {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  if (found !== undefined && found.ino === inode && found.dev === device) return;
  throw new HoldfastError(
    'ledger_unavailable',
    'The ledger file was moved, deleted or replaced while it was open.',
  );
}

function configure(db: Database.Database): void {
  // Counts only while the file is empty. An acceptance touches some two dozen pages: small ones are fewer bytes to sync.
  db.pragma(`page_size = ${PAGE_BYTES}`);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  // Not within a commit that somebody waits for: `wal.ts` says when.
  db.pragma('wal_autocheckpoint = 0');
  db.pragma(`journal_size_limit = ${WAL_KEPT_BYTES}`);
  db.pragma('foreign_keys = ON');
  db.pragma('trusted_schema = OFF');
  assertPragma(db, 'journal_mode', 'wal');
  assertPragma(db, 'synchronous', 2);
  assertPragma(db, 'foreign_keys', 1);
}

function createPrivate(file: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    if (existsSync(file)) return;
    closeSync(openSync(file, 'a', 0o600));
    chmodSync(file, 0o600);
  } catch (error) {
    throw new HoldfastError('ledger_unavailable', undefined, { cause: error });
  }
}

function assertVersion(db: Database.Database): void {
  const version = db.prepare<[], string>('SELECT sqlite_version()').pluck().get() ?? '';
  const parts = version.split('.').map(Number);
  const differs = SQLITE_MIN.findIndex((part, index) => parts[index] !== part);
  if (differs >= 0 && (parts[differs] ?? 0) < (SQLITE_MIN[differs] ?? 0)) {
    throw new HoldfastError('ledger_unavailable', `SQLite ${SQLITE_MIN.join('.')} or later is needed.`, {
      data: { found: version },
    });
  }
}

/** Reads before anything is written, so that another application's database stays as it was. @throws config_invalid */
export function assertOurs(db: Database.Database, file: string): void {
  const id = idOf(db, file);
  if (id === APPLICATION_ID) return;
  const tables = db.prepare<[], number>('SELECT count(*) FROM sqlite_schema').pluck().get();
  if (id !== 0 || tables !== 0) throw notOurs(file, undefined);
}

function idOf(db: Database.Database, file: string): unknown {
  try {
    return db.pragma('application_id', { simple: true });
  } catch (error) {
    throw sqliteCode(error) === 'SQLITE_NOTADB' ? notOurs(file, error) : error;
  }
}

function notOurs(file: string, cause: unknown): HoldfastError {
  return new HoldfastError('config_invalid', 'The ledger file is not a Holdfast ledger.', {
    data: { file },
    cause,
  });
}

function assertPragma(db: Database.Database, name: string, wanted: string | number): void {
  if (db.pragma(name, { simple: true }) !== wanted) {
    throw new HoldfastError('ledger_unavailable', `The database does not keep ${name} = ${wanted}.`);
  }
}

function assertSound(db: Database.Database): void {
  if (statSync(db.name).size > QUICK_CHECK_MAX) return;
  if (db.pragma('quick_check(1)', { simple: true }) !== 'ok') {
    throw new HoldfastError('ledger_unavailable', 'The ledger file is damaged.');
  }
}
