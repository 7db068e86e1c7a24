import type Database from 'better-sqlite3';
import { type CaseRef, toUtc } from '../../core/index.js';
import { asOf, type EffectRow, type Guard, type StoredEffect } from '../../ledger/index.js';
import { EFFECT_COLUMNS, type EffectColumns, ofEffect, toEffect } from '../rows/effects.js';
import { ofGuard, ofRef, type RefColumns } from '../rows/keys.js';
import { exactlyOne } from './errors.js';
import { FENCE, insertInto, THIS_CASE } from './keys.js';

export function effectTable(db: Database.Database) {
  const list = db.prepare<RefColumns, EffectColumns>(
    `SELECT * FROM effects WHERE ${THIS_CASE} ORDER BY rowid`,
  );
  const unknown = db.prepare<object, EffectColumns>(
    `SELECT * FROM effects WHERE tenant = @tenant AND state IN ('started', 'unknown')
       AND (state = 'unknown' OR limit_at <= @now) ORDER BY coalesce(settled_at, limit_at), rowid LIMIT @limit`,
  );
  const start = db.prepare<object>(insertInto('effects', EFFECT_COLUMNS, true));
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
    list: (ref: CaseRef): StoredEffect[] => list.all(ofRef(ref)).map(toEffect),
    unknown: (tenant: string, now: Date, limit: number | undefined): EffectRow[] =>
      unknown.all({ tenant, now: toUtc(now), limit: limit ?? -1 }).map((row) => asOf(toEffect(row), now)),
    start: (guard: Guard, again: boolean, row: StoredEffect): void =>
      exactlyOne((again ? restart : start).run({ ...ofEffect(row), ...ofGuard(guard) })),
    settle: (guard: Guard, row: StoredEffect): void =>
      exactlyOne(settle.run({ ...ofEffect(row), ...ofGuard(guard) })),
  };
}
