import type Database from 'better-sqlite3';
import type { CaseRef } from '../../core/index.js';
import type { Transfer } from '../../ledger/index.js';
import { ofRef, type RefColumns } from '../rows/keys.js';
import { ofTransfer, TRANSFER_COLUMNS, type TransferColumns, toTransfer } from '../rows/transfers.js';
import { exactlyOne } from './errors.js';
import { insertInto, THIS_CASE } from './keys.js';

export function transferTable(db: Database.Database) {
  const list = db.prepare<RefColumns, TransferColumns>(
    `SELECT * FROM transfers WHERE ${THIS_CASE} ORDER BY new_epoch`,
  );
  const add = db.prepare<TransferColumns>(insertInto('transfers', TRANSFER_COLUMNS));
  return {
    list: (ref: CaseRef): Transfer[] => list.all(ofRef(ref)).map(toTransfer),
    add: (row: Transfer): void => exactlyOne(add.run(ofTransfer(row))),
  };
}
