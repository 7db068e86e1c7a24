import type Database from 'better-sqlite3';
import { type CaseRef, toUtc } from '../../core/index.js';
import { asOf, type EffectRow, type Guard, type StoredEffect } from '../../ledger/index.js';
import { exactlyOne } from './errors.js';
import { FENCE, insertInto, ofGuard, ofRef, type RefColumns, THIS_CASE, toRef } from './keys.js';

interface Columns extends RefColumns {
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

const COLUMNS = [
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
] as const satisfies readonly (keyof Columns)[];

const toRow = (row: Columns): StoredEffect => ({
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

const ofRow = (row: StoredEffect): Columns => ({
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

export function effectTable(db: Database.Database) {
  const list = db.prepare<RefColumns, Columns>(`SELECT * FROM effects WHERE ${THIS_CASE} ORDER BY rowid`);
  const unknown = db.prepare<object, Columns>(
    `SELECT * FROM effects WHERE tenant = @tenant AND state IN ('started', 'unknown')
       AND (state = 'unknown' OR limit_at <= @now) ORDER BY coalesce(settled_at, limit_at), rowid LIMIT @limit`,
  );
  const start = db.prepare<object>(insertInto('effects', COLUMNS, true));
  const restart = db.prepare<object>(
    `UPDATE effects SET operation = @operation, amount = @amount, currency = @currency, epoch = @epoch,
       owner = @owner, state = 'started', started_at = @started_at, started_seq = @started_seq,
       limit_at = @limit_at, settled_at = NULL, outcome = NULL
     WHERE ${THIS_CASE} AND key = @key AND state = 'failed' AND ${FENCE}`,
  );
  const settle = db.prepare<object>(
    `UPDATE effects SET state = @state, settled_at = @settled_at, outcome = @outcome
     WHERE ${THIS_CASE} AND key = @key AND state IN ('started', 'unknown') AND ${FENCE}`,
  );
  return {
    list: (ref: CaseRef): StoredEffect[] => list.all(ofRef(ref)).map(toRow),
    unknown: (tenant: string, now: Date, limit: number | undefined): EffectRow[] =>
      unknown.all({ tenant, now: toUtc(now), limit: limit ?? -1 }).map((row) => asOf(toRow(row), now)),
    start: (guard: Guard, again: boolean, row: StoredEffect): void =>
      exactlyOne((again ? restart : start).run({ ...ofRow(row), ...ofGuard(guard) })),
    settle: (guard: Guard, row: StoredEffect): void =>
      exactlyOne(settle.run({ ...ofRow(row), ...ofGuard(guard) })),
  };
}
