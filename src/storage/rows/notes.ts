import type { NoteRow } from '../../ledger/index.js';
import { ofRef, type RefColumns, toRef } from './keys.js';

export interface NoteColumns extends RefColumns {
  id: string;
  epoch: number;
  writer: string;
  text: string;
  at: string;
}

export const NOTE_COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'id',
  'epoch',
  'writer',
  'text',
  'at',
] as const satisfies readonly (keyof NoteColumns)[];

export const toNote = (row: NoteColumns): NoteRow => ({
  id: row.id,
  ref: toRef(row),
  epoch: row.epoch,
  writer: row.writer,
  text: row.text,
  at: row.at,
});

export const ofNote = (row: NoteRow): NoteColumns => ({
  ...ofRef(row.ref),
  id: row.id,
  epoch: row.epoch,
  writer: row.writer,
  text: row.text,
  at: row.at,
});
