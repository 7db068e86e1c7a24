import type Database from 'better-sqlite3';
import type { CaseRef } from '../../core/index.js';
import type { Quarantine } from '../../ledger/index.js';
import { ofRef, type RefColumns } from '../rows/keys.js';
import {
  ofQuarantine,
  QUARANTINE_COLUMNS,
  type QuarantineColumns,
  toQuarantine,
} from '../rows/quarantines.js';
import { exactlyOne } from './errors.js';
import { insertInto, THIS_CASE } from './keys.js';

export function quarantineTable(db: Database.Database) {
  const has = db.prepare<RefColumns, 1>(`SELECT 1 FROM quarantines WHERE ${THIS_CASE}`).pluck();
  const list = db.prepare<[string], QuarantineColumns>(
    'SELECT * FROM quarantines WHERE tenant = ? ORDER BY rowid',
  );
  const add = db.prepare<QuarantineColumns>(insertInto('quarantines', QUARANTINE_COLUMNS));
  const lift = db.prepare<RefColumns>(`DELETE FROM quarantines WHERE ${THIS_CASE}`);
  return {
    has: (ref: CaseRef): boolean => has.get(ofRef(ref)) !== undefined,
    list: (tenant: string): Quarantine[] => list.all(tenant).map(toQuarantine),
    add: (row: Quarantine): void => exactlyOne(add.run(ofQuarantine(row))),
    lift: (ref: CaseRef): void => exactlyOne(lift.run(ofRef(ref))),
  };
}
