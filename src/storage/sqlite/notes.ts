import type Database from 'better-sqlite3';
import type { CaseRef } from '../../core/index.js';
import type { Guard, NoteRow } from '../../ledger/index.js';
import { ofGuard, ofRef, type RefColumns } from '../rows/keys.js';
import { NOTE_COLUMNS, type NoteColumns, toNote } from '../rows/notes.js';
import { exactlyOne } from './errors.js';
import { insertInto, THIS_CASE } from './keys.js';

export function noteTable(db: Database.Database) {
  const list = db.prepare<RefColumns, NoteColumns>(`SELECT * FROM notes WHERE ${THIS_CASE} ORDER BY rowid`);
  const add = db.prepare<object>(insertInto('notes', NOTE_COLUMNS, true));
  return {
    list: (ref: CaseRef): NoteRow[] => list.all(ofRef(ref)).map(toNote),
    add(guard: Guard, row: NoteRow): void {
      const { id, epoch, writer, text, at } = row;
      exactlyOne(add.run({ id, epoch, writer, text, at, ...ofGuard(guard) }));
    },
  };
}
