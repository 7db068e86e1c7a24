import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { HoldfastError, isHoldfastError } from '../../core/index.js';
import type { LedgerDatabase, Row, Value } from './database.js';
import { readLines } from './lines.js';
import { LEDGER_TABLES } from './tables.js';

/**
 * A backup is JSON lines, the same for every engine: a header; for each table a line with its columns, then a line for each row; at the
 * end the number of rows of each table and the SHA-256 of every byte before that line.
 */
export interface BackupHeader {
  readonly format: 'holdfast-ledger';
  readonly version: 1;
  readonly engine: LedgerDatabase['engine'];
  readonly incarnation: string;
  readonly taken_at: string;
}

export interface Backup extends BackupHeader {
  readonly rows: Readonly<Record<string, number>>;
  readonly sha256: string;
}

type OnRows = (table: string, columns: readonly string[], rows: readonly Row[]) => Promise<void>;

const BATCH = 200;

/**
 * Writes all rows to a new file, mode 0600, compressed where its name ends in `.gz`; a failure leaves no file behind.
 * @throws already_exists, usage where it cannot be written
 */
export async function writeBackup(
  file: string,
  header: BackupHeader,
  database: LedgerDatabase,
): Promise<void> {
  const handle = await openNew(file);
  try {
    const compress = file.endsWith('.gz') ? [createGzip()] : [];
    const out = handle.createWriteStream({ flush: true });
    await pipeline([Readable.from(textOf(header, database)), ...compress, out]);
  } catch (error) {
    rmSync(file, { force: true });
    if (isHoldfastError(error)) throw error;
    throw unwritable(file, error);
  } finally {
    await handle.close().catch(() => undefined);
  }
}

async function* textOf(header: BackupHeader, database: LedgerDatabase): AsyncGenerator<string> {
  const hash = createHash('sha256');
  const hashed = (text: string) => {
    hash.update(text);
    return text;
  };
  const rows: Record<string, number> = {};
  yield hashed(lineOf(header));
  for (const table of LEDGER_TABLES) {
    rows[table.name] = 0;
    yield hashed(lineOf({ table: table.name, columns: table.columns }));
    for await (const batch of database.rows(table)) {
      rows[table.name] = (rows[table.name] ?? 0) + batch.length;
      if (batch.length > 0) yield hashed(batch.map(lineOf).join(''));
    }
  }
  yield lineOf({ rows, sha256: hash.digest('hex') });
}

const lineOf = (value: unknown) => `${JSON.stringify(value)}\n`;

async function openNew(file: string): Promise<FileHandle> {
  try {
    return await open(file, 'wx', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw new HoldfastError(
        'already_exists',
        `${file} exists already, and no backup is written over another file. Choose another name.`,
        { cause: error },
      );
    }
    throw unwritable(file, error);
  }
}

function unwritable(file: string, cause: unknown): HoldfastError {
  const { code = 'unknown' } = cause as NodeJS.ErrnoException;
  const reason = code === 'ENOENT' ? 'its folder is not there' : code;
  return new HoldfastError('usage', `The backup ${file} cannot be written (${reason}).`, { cause });
}

/**
 * Reads a backup to its end, handing on the rows if somebody wants them; that it is whole is known only then.
 * @throws backup_invalid naming the line, schema_newer where it has what this version does not know, usage where it cannot be read
 */
export async function readBackup(file: string, onRows: OnRows = async () => {}): Promise<Backup> {
  const reader = new Reader(file, onRows);
  try {
    for await (const { bytes, whole } of readLines(file)) await reader.take(bytes, whole);
  } catch (error) {
    if (isHoldfastError(error)) throw error;
    const { code = '' } = error as NodeJS.ErrnoException;
    if (/^(ENOENT|EACCES|EPERM|EISDIR|ENOTDIR)$/.test(code)) {
      const reason = code === 'ENOENT' ? 'there is no such file' : code;
      throw new HoldfastError('usage', `The backup ${file} cannot be read (${reason}).`, { cause: error });
    }
    throw reader.broken('cannot be read on', error);
  }
  return reader.end();
}

class Reader {
  readonly #hash = createHash('sha256');
  readonly #rows: Record<string, number> = {};
  #line = 0;
  #header: BackupHeader | null = null;
  #table: { name: string; columns: readonly string[] } | null = null;
  #batch: Row[] = [];
  #backup: Backup | null = null;

  constructor(
    readonly file: string,
    readonly onRows: OnRows,
  ) {}

  async take(bytes: Buffer, whole: boolean): Promise<void> {
    this.#line += 1;
    if (this.#backup) throw this.broken('goes on behind its end');
    if (!whole && this.#header) throw this.broken('is cut off');
    const value = this.#parse(bytes);
    if (this.#header === null) this.#header = this.#headerOf(value);
    else if (Array.isArray(value)) await this.#addRow(value);
    else {
      await this.#flush();
      if ('sha256' in value) {
        this.#backup = this.#conclude(this.#header, value);
        return;
      }
      this.#table = this.#tableOf(value);
      this.#rows[this.#table.name] = 0;
    }
    this.#hash.update(bytes).update('\n');
  }

  end(): Backup {
    if (this.#backup === null) throw this.broken('ends before its end');
    return this.#backup;
  }

  broken(problem: string, cause?: unknown): HoldfastError {
    const message = `${this.file} ${problem} (line ${this.#line}).`;
    return new HoldfastError('backup_invalid', message, {
      data: { file: this.file, line: this.#line },
      cause,
    });
  }

  #parse(bytes: Buffer): Record<string, unknown> | unknown[] {
    let value: unknown;
    try {
      value = JSON.parse(bytes.toString('utf8'));
    } catch (error) {
      throw this.broken('is not a backup: no JSON', error);
    }
    if (typeof value !== 'object' || value === null) throw this.broken('is not a backup');
    return value as Record<string, unknown> | unknown[];
  }

  #headerOf(value: Record<string, unknown> | unknown[]): BackupHeader {
    const header = value as unknown as BackupHeader;
    if (header.format !== 'holdfast-ledger') throw this.broken('is not a backup of a ledger');
    if (header.version !== 1) {
      const message = `${this.file} was written by a newer version of Holdfast.`;
      throw new HoldfastError('schema_newer', message, { data: { found: Number(header.version), known: 1 } });
    }
    return header;
  }

  #tableOf({ table, columns }: Record<string, unknown>): { name: string; columns: readonly string[] } {
    if (typeof table !== 'string' || !Array.isArray(columns)) throw this.broken('is not a backup');
    if (Object.hasOwn(this.#rows, table)) throw this.broken(`has ${table} twice`);
    const known = LEDGER_TABLES.find(({ name }) => name === table);
    const strange = known ? columns.find((column) => !known.columns.includes(column)) : table;
    if (known && strange === undefined) return { name: table, columns };
    const message = `${this.file} has ${known ? `a column ${table}.` : 'a table '}${strange}, which this version does not know.`;
    throw new HoldfastError('schema_newer', message);
  }

  async #addRow(row: unknown[]): Promise<void> {
    const table = this.#table;
    if (table === null || row.length !== table.columns.length || !row.every(isValue)) {
      throw this.broken('has a row that is none');
    }
    this.#rows[table.name] = (this.#rows[table.name] ?? 0) + 1;
    this.#batch.push(row);
    if (this.#batch.length >= BATCH) await this.#flush();
  }

  async #flush(): Promise<void> {
    const rows = this.#batch;
    this.#batch = [];
    if (this.#table && rows.length > 0) await this.onRows(this.#table.name, this.#table.columns, rows);
  }

  #conclude(header: BackupHeader, { rows, sha256 }: Record<string, unknown>): Backup {
    if (sha256 !== this.#hash.digest('hex')) throw this.broken('was changed: its digest is another');
    if (JSON.stringify(rows) !== JSON.stringify(this.#rows)) throw this.broken('says other numbers of rows');
    return { ...header, rows: this.#rows, sha256: sha256 as string };
  }
}

function isValue(value: unknown): value is Value {
  return value === null || typeof value === 'string' || Number.isSafeInteger(value);
}
