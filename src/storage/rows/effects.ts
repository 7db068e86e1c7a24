import type { StoredEffect } from '../../ledger/index.js';
import { ofRef, type RefColumns, toRef } from './keys.js';

export interface EffectColumns extends RefColumns {
  key: string;
  operation: string;
  amount: string | null;
  currency: string | null;
  epoch: number;
  owner: string;
  state: StoredEffect['state'];
  started_at: string;
  started_seq: number;
  limit_at: string;
  settled_at: string | null;
  outcome: string | null;
}

export const EFFECT_COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'key',
  'operation',
  'amount',
  'currency',
  'epoch',
  'owner',
  'state',
  'started_at',
  'started_seq',
  'limit_at',
  'settled_at',
  'outcome',
] as const satisfies readonly (keyof EffectColumns)[];

export const toEffect = (row: EffectColumns): StoredEffect => ({
  ref: toRef(row),
  key: row.key,
  operation: row.operation,
  amount:
    row.amount === null || row.currency === null ? null : { amount: row.amount, currency: row.currency },
  epoch: row.epoch,
  owner: row.owner,
  state: row.state,
  startedAt: row.started_at,
  limitAt: row.limit_at,
  settledAt: row.settled_at,
  outcome: row.outcome,
  startedSeq: row.started_seq,
});

export const ofEffect = (row: StoredEffect): EffectColumns => ({
  ...ofRef(row.ref),
  key: row.key,
  operation: row.operation,
  amount: row.amount?.amount ?? null,
  currency: row.amount?.currency ?? null,
  epoch: row.epoch,
  owner: row.owner,
  state: row.state,
  started_at: row.startedAt,
  started_seq: row.startedSeq,
  limit_at: row.limitAt,
  settled_at: row.settledAt,
  outcome: row.outcome,
});
