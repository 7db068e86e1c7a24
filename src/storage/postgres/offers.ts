import { type OfferRow, offerRow } from '../../ledger/index.js';
import type { HandoffKey, OfferFilter } from '../engine.js';
import { type OfferColumns, toOffer } from '../rows/offers.js';
import { type Ask, IS_OPEN, listOf } from './keys.js';

const LAST = {
  name: 'last attempt',
  text: `SELECT coalesce(max(attempt), 0) AS last FROM (
    SELECT attempt FROM holdfast.offers WHERE tenant = $1 AND root = $2 AND sender = $3 AND handoff_id = $4
    UNION ALL SELECT attempt FROM holdfast.decisions
      WHERE tenant = $1 AND root = $2 AND sender = $3 AND handoff_id = $4) a`,
};

const DOUBTFUL = {
  name: 'doubtful offers',
  text: `SELECT o.* FROM holdfast.offers o WHERE o.tenant = $1 AND o.${IS_OPEN} AND o.state = 'in_doubt' AND NOT EXISTS (
    SELECT 1 FROM holdfast.quarantines q WHERE q.tenant = o.tenant AND q.root = o.root AND q.case_id = o.case_id)
    ORDER BY o.ord`,
};

export const offerTable = (ask: Ask) => ({
  async list(tenant: string, { from, to, caseId, open, holds, limit }: OfferFilter): Promise<OfferRow[]> {
    const given = { sender: from, to_agent: to, case_id: caseId };
    const where = open === undefined ? '' : open ? ` AND ${IS_OPEN}` : ` AND NOT ${IS_OPEN}`;
    const found = await ask<OfferColumns>(
      ...listOf('offers', tenant, given, { where, holds, order: 'ord DESC', limit }),
    );
    return found.map((row) => offerRow(toOffer(row)));
  },
  /** Of cases that are not quarantined. */
  doubtful: async (tenant: string): Promise<OfferRow[]> =>
    (await ask<OfferColumns>(DOUBTFUL, [tenant])).map((row) => offerRow(toOffer(row))),
  /** The highest attempt with an offer or a decision. */
  async lastAttempt({ tenant, root, sender, handoffId }: HandoffKey): Promise<number> {
    const [row] = await ask<{ last: number }>(LAST, [tenant, root, sender, handoffId]);
    return row?.last ?? 0;
  },
});
