import type { CaseRef } from '../../core/index.js';
import type { NoteRow } from '../../ledger/index.js';
import { type NoteColumns, toNote } from '../rows/notes.js';
import { type Ask, caseOf, THIS_CASE } from './keys.js';

const LIST = { name: 'notes', text: `SELECT * FROM holdfast.notes WHERE ${THIS_CASE} ORDER BY ord` };

export const noteTable = (ask: Ask) => ({
  list: async (ref: CaseRef): Promise<NoteRow[]> => (await ask<NoteColumns>(LIST, caseOf(ref))).map(toNote),
});
