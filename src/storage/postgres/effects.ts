import { toUtc } from '../../core/index.js';
import { asOf, type EffectRow } from '../../ledger/index.js';
import { type EffectColumns, toEffect } from '../rows/effects.js';
import type { Ask } from './keys.js';

/** `$2` is the time to judge by, where it is not the database's own. */
const UNKNOWN = {
  name: 'unknown effects',
  text: `SELECT e.*, clock.now FROM holdfast.effects e, (SELECT coalesce($2::timestamptz, clock_timestamp()) AS now) clock
    WHERE e.tenant = $1 AND e.state IN ('started', 'unknown')
      AND (e.state = 'unknown' OR e.limit_at::timestamptz <= clock.now)
    ORDER BY coalesce(e.settled_at, e.limit_at), e.ord LIMIT $3`,
};

export const effectTable = (ask: Ask) => ({
  async unknown(tenant: string, given: Date | undefined, limit: number | undefined): Promise<EffectRow[]> {
    const values = [tenant, given === undefined ? null : toUtc(given), limit ?? null];
    const found = await ask<EffectColumns & { now: Date }>(UNKNOWN, values);
    return found.map((row) => asOf(toEffect(row), row.now));
  },
});
