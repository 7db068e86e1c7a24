import { toUtc } from '../../core/index.js';
import type { OfferClaim, WorkClaim } from '../../ledger/index.js';
import type { OfferColumns } from '../rows/offers.js';
import type { WorkColumns } from '../rows/work.js';
import type { Session } from './connection.js';
import { IS_UNFINISHED } from './keys.js';

/** Claimed by nobody who lives at `$3`, and not of a quarantined case. Rows that another process looks at to claim are passed over. */
const free = (what: 'offer' | 'work', id: string) => `
  AND NOT EXISTS (SELECT 1 FROM holdfast.claims c JOIN holdfast.holders h ON h.holder = c.holder
    WHERE c.tenant = o.tenant AND c.what = '${what}' AND c.id = ${id} AND h.until > $3)
  AND NOT EXISTS (SELECT 1 FROM holdfast.quarantines q
    WHERE q.tenant = o.tenant AND q.root = o.root AND q.case_id = o.case_id)
  ORDER BY o.ord LIMIT $4 FOR NO KEY UPDATE OF o SKIP LOCKED`;

const OFFERS = {
  name: 'free offers',
  text: `SELECT o.* FROM holdfast.offers o WHERE o.tenant = $1 AND o.sender = $2 AND o.${IS_UNFINISHED}
    AND ($5::text IS NULL OR (o.root = $5 AND o.sender = $6 AND o.handoff_id = $7 AND o.attempt = $8::numeric))
    ${free('offer', "o.root || ' ' || o.sender || ' ' || o.handoff_id || ' ' || o.attempt")}`,
};
const WORK = {
  name: 'free work',
  text: `SELECT o.* FROM holdfast.work_items o WHERE o.tenant = $1 AND o.owner = $2 AND o.state = 'open'
    AND ($5::text IS NULL OR o.id = $5)
    ${free('work', 'o.id')}`,
};

/** Inside a transaction, which holds what it finds. */
export function freeOffers(session: Session, claim: OfferClaim, now: Date): Promise<OfferColumns[]> {
  const { tenant, agent, limit, key } = claim;
  const only = [key?.root, key?.sender, key?.handoffId, key?.attempt];
  return session.query<OfferColumns>(OFFERS, [tenant, agent, toUtc(now), limit, ...only]);
}

export function freeWork(session: Session, claim: WorkClaim, now: Date): Promise<WorkColumns[]> {
  const { tenant, agent, limit, workId } = claim;
  return session.query<WorkColumns>(WORK, [tenant, agent, toUtc(now), limit, workId]);
}
