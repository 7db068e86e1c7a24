import { HoldfastError } from '../core/index.js';
import type { SqliteDatabase } from './connection.js';
import { columnsOf, type FenceSpec, noLedger, quoteName } from './spec.js';

/** Columns that are unique together, each under its collation, among the rows for which `where` holds. */
export interface UniqueKey {
  readonly columns: readonly { readonly name: string; readonly collation: string }[];
  /** SQL over the table's columns, of a partial index. */
  readonly where: string | null;
}

/** What the triggers have to know of a table that SQLite's own language cannot ask for. */
export interface SqliteTable {
  readonly columns: readonly string[];
  /** What identifies a row: the primary key of a table WITHOUT ROWID, or a name of the rowid that no column has taken. */
  readonly identity: readonly string[];
  readonly unique: readonly UniqueKey[];
}

/**
 * Looks at a table of the file.
 * @throws usage where it is not there or can take no fence
 */
export function readSqliteTable(db: SqliteDatabase, spec: FenceSpec): SqliteTable {
  const { table } = spec;
  const ledger = db
    .prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name IN ('cases', 'quarantines')")
    .get();
  if (Number((ledger as { n: number | bigint }).n) < 2) throw noLedger();
  const found = db
    .prepare("SELECT type, wr FROM pragma_table_list WHERE schema = 'main' AND name = ?")
    .get(table) as { type: string; wr: number | bigint } | undefined;
  if (found === undefined || table.toLowerCase().startsWith('sqlite_')) {
    throw new HoldfastError(
      'usage',
      `There is no table ${table} in the file; names are taken exactly as written.`,
    );
  }
  if (found.type !== 'table')
    throw new HoldfastError('usage', `${table} is no table: fence the tables behind it.`);
  const info = db.prepare('SELECT name, pk FROM pragma_table_xinfo(?) ORDER BY cid').all(table) as {
    name: string;
    pk: number | bigint;
  }[];
  const columns = info.map(({ name }) => name);
  for (const column of columnsOf(spec)) {
    if (column !== spec.tokenColumn && !columns.includes(column)) {
      throw new HoldfastError(
        'usage',
        `The table ${table} has no column ${column}; names are taken exactly as written.`,
      );
    }
  }
  const keys = info.filter(({ pk }) => Number(pk) > 0).map(({ name }) => name);
  const identity = Number(found.wr) === 1 ? keys : [rowidOf(table, columns)];
  const byRowid = { columns: identity.map((name) => ({ name, collation: 'BINARY' })), where: null };
  const unique = [...(Number(found.wr) === 1 ? [] : [byRowid]), ...uniqueIndexes(db, table)];
  return { columns, identity, unique };
}

function rowidOf(table: string, columns: readonly string[]): string {
  const taken = new Set(columns.map((name) => name.toLowerCase()));
  const free = ['_rowid_', 'rowid', 'oid'].find((name) => !taken.has(name));
  if (free === undefined)
    throw new HoldfastError('usage', `Columns of ${table} have taken every name of the rowid.`);
  return free;
}

function uniqueIndexes(db: SqliteDatabase, table: string): UniqueKey[] {
  const indexes = db
    .prepare('SELECT name, partial FROM pragma_index_list(?) WHERE "unique" = 1 ORDER BY name')
    .all(table) as { name: string; partial: number | bigint }[];
  return indexes.map(({ name, partial }) => {
    const columns = db
      .prepare('SELECT name, coll AS collation FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno')
      .all(name) as { name: string | null; collation: string }[];
    if (columns.some((column) => column.name === null)) {
      const problem = `The unique index ${name} is on an expression: what OR REPLACE would remove cannot be foreseen.`;
      throw new HoldfastError('usage', problem);
    }
    return {
      columns: columns as UniqueKey['columns'],
      where: Number(partial) === 1 ? conditionOf(db, name) : null,
    };
  });
}

/** A partial index keeps its condition only in the text that made it: what follows the list of columns. */
function conditionOf(db: SqliteDatabase, index: string): string {
  const { sql } = db
    .prepare("SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = ?")
    .get(index) as {
    sql: string;
  };
  const token = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?\*\/|[()]/g;
  let depth = 0;
  for (const { 0: text, index: at } of sql.matchAll(token)) {
    if (text === '(') depth += 1;
    if (text === ')') depth -= 1;
    if (text === ')' && depth === 0) {
      const condition = /^\s*WHERE\b([\s\S]*)$/i.exec(sql.slice(at + 1))?.[1];
      if (condition !== undefined) return condition.trim();
    }
  }
  throw new HoldfastError('usage', `The condition of the index ${index} cannot be read.`);
}

/** Rows of the table, called `held`, that are in the way of the row `NEW` under this key. */
export function inTheWay(key: UniqueKey, table: string, columns: readonly string[]): string {
  const same = key.columns.map(
    ({ name, collation }) =>
      `held.${quoteName(name)} = NEW.${quoteName(name)} COLLATE ${quoteName(collation)}`,
  );
  if (key.where !== null) {
    const row = columns.map((name) => `NEW.${quoteName(name)} AS ${quoteName(name)}`).join(', ');
    same.push(`(${key.where}\n)`, `(SELECT (${key.where}\n) FROM (SELECT ${row}))`);
  }
  return `FROM ${quoteName(table)} AS held WHERE ${same.join(' AND ')}`;
}
