import type Database from 'better-sqlite3';
import type { CaseRef } from '../../core/index.js';
import type { Guard, NoteRow } from '../../ledger/index.js';
import { exactlyOne } from './errors.js';
import { insertInto, ofGuard, ofRef, type RefColumns, THIS_CASE, toRef } from './keys.js';

interface Columns extends RefColumns {
  id: string;
  epoch: number;
  writer: string;
  text: string;
  at: string;
}

const COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'id',
  'epoch',
  'writer',
  'text',
  'at',
] as const satisfies readonly (keyof Columns)[];

const toRow = (row: Columns): NoteRow => ({
  id: row.id,
  ref: toRef(row),
  epoch: row.epoch,
  writer: row.writer,
  text: row.text,
  at: row.at,
});

export function noteTable(db: Database.Database) {
  const list = db.prepare<RefColumns, Columns>(`SELECT * FROM notes WHERE ${THIS_CASE} ORDER BY rowid`);
  const add = db.prepare<object>(insertInto('notes', COLUMNS, true));
  return {
    list: (ref: CaseRef): NoteRow[] => list.all(ofRef(ref)).map(toRow),
    add(guard: Guard, row: NoteRow): void {
      const { id, epoch, writer, text, at } = row;
      exactlyOne(add.run({ id, epoch, writer, text, at, ...ofGuard(guard) }));
    },
  };
}
