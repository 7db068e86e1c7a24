import type Database from 'better-sqlite3';
import type { CaseRef } from '../../core/index.js';
import type { Quarantine } from '../../ledger/index.js';
import { exactlyOne } from './errors.js';
import { insertInto, ofRef, type RefColumns, THIS_CASE, toRef } from './keys.js';

interface Columns extends RefColumns {
  reason: Quarantine['reason'];
  witnessed: string;
  found: string;
  at: string;
}

const COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'reason',
  'witnessed',
  'found',
  'at',
] as const satisfies readonly (keyof Columns)[];

const toRow = (row: Columns): Quarantine => ({
  ref: toRef(row),
  reason: row.reason,
  witnessed: JSON.parse(row.witnessed),
  found: JSON.parse(row.found),
  at: row.at,
});

const ofRow = (row: Quarantine): Columns => ({
  ...ofRef(row.ref),
  reason: row.reason,
  witnessed: JSON.stringify(row.witnessed),
  found: JSON.stringify(row.found),
  at: row.at,
});

export function quarantineTable(db: Database.Database) {
  const has = db.prepare<RefColumns, 1>(`SELECT 1 FROM quarantines WHERE ${THIS_CASE}`).pluck();
  const list = db.prepare<[string], Columns>('SELECT * FROM quarantines WHERE tenant = ? ORDER BY rowid');
  const add = db.prepare<Columns>(insertInto('quarantines', COLUMNS));
  return {
    has: (ref: CaseRef): boolean => has.get(ofRef(ref)) !== undefined,
    list: (tenant: string): Quarantine[] => list.all(tenant).map(toRow),
    add: (row: Quarantine): void => exactlyOne(add.run(ofRow(row))),
  };
}
