import type { OfferRow, StoredOffer } from '../../ledger/index.js';
import { type KeyColumns, ofKey, ofRef, type RefColumns, toKey, toRef } from './keys.js';

export interface OfferColumns extends RefColumns, KeyColumns {
  kind: string;
  to_agent: string;
  contract: string;
  skill: string;
  epoch: number;
  digest: string;
  message: string;
  state: OfferRow['state'];
  code: string | null;
  accept_by: string;
  intended_at: string;
  intended_seq: number;
  closed_at: string | null;
  withheld: string;
  receipt: string | null;
  receipt_key: string | null;
}

export const OFFER_COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'sender',
  'handoff_id',
  'attempt',
  'kind',
  'to_agent',
  'contract',
  'skill',
  'epoch',
  'digest',
  'message',
  'state',
  'code',
  'accept_by',
  'intended_at',
  'intended_seq',
  'closed_at',
  'withheld',
  'receipt',
  'receipt_key',
] as const satisfies readonly (keyof OfferColumns)[];

export const toOffer = (row: OfferColumns): StoredOffer => ({
  key: toKey(row),
  ref: toRef(row),
  kind: row.kind,
  toAgent: row.to_agent,
  contract: row.contract,
  skill: row.skill,
  epoch: row.epoch,
  digest: row.digest,
  message: row.message,
  state: row.state,
  code: row.code,
  acceptBy: row.accept_by,
  intendedAt: row.intended_at,
  closedAt: row.closed_at,
  withheld: JSON.parse(row.withheld),
  receipt: row.receipt,
  receiptKey: row.receipt_key,
  intendedSeq: row.intended_seq,
});

export const ofOffer = (row: StoredOffer): OfferColumns => ({
  ...ofRef(row.ref),
  ...ofKey(row.key),
  kind: row.kind,
  to_agent: row.toAgent,
  contract: row.contract,
  skill: row.skill,
  epoch: row.epoch,
  digest: row.digest,
  message: row.message,
  state: row.state,
  code: row.code,
  accept_by: row.acceptBy,
  intended_at: row.intendedAt,
  intended_seq: row.intendedSeq,
  closed_at: row.closedAt,
  withheld: JSON.stringify(row.withheld),
  receipt: row.receipt,
  receipt_key: row.receiptKey,
});
