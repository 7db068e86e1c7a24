import type { Transfer } from '../../ledger/index.js';
import { type KeyColumns, ofKey, ofRef, type RefColumns, toKey, toRef } from './keys.js';

export interface TransferColumns extends RefColumns, KeyColumns {
  to_agent: string;
  old_epoch: number;
  new_epoch: number;
  digest: string;
  receipt: string;
  receipt_key: string;
}

export const TRANSFER_COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'sender',
  'handoff_id',
  'attempt',
  'to_agent',
  'old_epoch',
  'new_epoch',
  'digest',
  'receipt',
  'receipt_key',
] as const satisfies readonly (keyof TransferColumns)[];

export const toTransfer = (row: TransferColumns): Transfer => ({
  key: toKey(row),
  ref: toRef(row),
  toAgent: row.to_agent,
  oldEpoch: row.old_epoch,
  newEpoch: row.new_epoch,
  digest: row.digest,
  receipt: row.receipt,
  receiptKey: row.receipt_key,
});

export const ofTransfer = (row: Transfer): TransferColumns => ({
  ...ofRef(row.ref),
  ...ofKey(row.key),
  to_agent: row.toAgent,
  old_epoch: row.oldEpoch,
  new_epoch: row.newEpoch,
  digest: row.digest,
  receipt: row.receipt,
  receipt_key: row.receiptKey,
});
