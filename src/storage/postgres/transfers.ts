import type { CaseRef } from '../../core/index.js';
import type { Transfer } from '../../ledger/index.js';
import { type TransferColumns, toTransfer } from '../rows/transfers.js';
import { type Ask, caseOf, THIS_CASE } from './keys.js';

const LIST = {
  name: 'transfers',
  text: `SELECT * FROM holdfast.transfers WHERE ${THIS_CASE} ORDER BY new_epoch`,
};

export const transferTable = (ask: Ask) => ({
  list: async (ref: CaseRef): Promise<Transfer[]> =>
    (await ask<TransferColumns>(LIST, caseOf(ref))).map(toTransfer),
});
