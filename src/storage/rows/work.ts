import type { WorkItem } from '../../ledger/index.js';
import { type KeyColumns, ofKey, ofRef, type RefColumns, toKey, toRef } from './keys.js';

export interface WorkColumns extends RefColumns, KeyColumns {
  id: string;
  owner: string;
  epoch: number;
  contract: string;
  state: WorkItem['state'];
  envelope: string;
  result: string | null;
  created_at: string;
  settled_at: string | null;
}

export const WORK_COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'id',
  'sender',
  'handoff_id',
  'attempt',
  'owner',
  'epoch',
  'contract',
  'state',
  'envelope',
  'result',
  'created_at',
  'settled_at',
] as const satisfies readonly (keyof WorkColumns)[];

export const toWork = (row: WorkColumns): WorkItem => ({
  id: row.id,
  ref: toRef(row),
  key: toKey(row),
  owner: row.owner,
  epoch: row.epoch,
  contract: row.contract,
  state: row.state,
  envelope: row.envelope,
  result: row.result,
  createdAt: row.created_at,
  settledAt: row.settled_at,
});

export const ofWork = (row: WorkItem): WorkColumns => ({
  ...ofRef(row.ref),
  ...ofKey(row.key),
  id: row.id,
  owner: row.owner,
  epoch: row.epoch,
  contract: row.contract,
  state: row.state,
  envelope: row.envelope,
  result: row.result,
  created_at: row.createdAt,
  settled_at: row.settledAt,
});
