import { toUtc } from '../../core/index.js';
import type { PendingClaim, PendingFilter, PendingOffer } from '../../ledger/index.js';
import { patienceEnds } from '../attention.js';
import { isAwaited, type PendingColumns, toPending } from '../rows/pending.js';
import type { Session } from './connection.js';
import { type Ask, listOf } from './keys.js';

const OF_TASK = {
  name: 'pending of task',
  text: 'SELECT * FROM holdfast.pending WHERE task_id = $2 AND tenant = $1',
};
/** Rows that another process looks at to claim are passed over. */
const FREE = {
  name: 'free pending',
  text: `SELECT o.* FROM holdfast.pending o WHERE o.tenant = $1 AND o.to_agent = $2 AND o.state <> 'decided'
    AND (o.state = 'deciding' OR o.accept_by < $3)
    AND ($5::text IS NULL OR (o.root = $5 AND o.sender = $6 AND o.handoff_id = $7 AND o.attempt = $8::numeric))
    AND NOT EXISTS (SELECT 1 FROM holdfast.holders h WHERE h.holder = o.holder AND h.until > $3)
    AND NOT EXISTS (SELECT 1 FROM holdfast.quarantines q
      WHERE q.tenant = o.tenant AND q.root = o.root AND q.case_id = o.case_id)
    ORDER BY o.ord LIMIT $4 FOR NO KEY UPDATE OF o SKIP LOCKED`,
};

const AWAITED = {
  name: 'awaited decisions',
  text: `SELECT o.* FROM holdfast.pending o WHERE o.tenant = $1 AND ${isAwaited('$2', '$3')}
    AND NOT EXISTS (SELECT 1 FROM holdfast.quarantines q
      WHERE q.tenant = o.tenant AND q.root = o.root AND q.case_id = o.case_id)
    ORDER BY o.received_at, o.ord LIMIT $4`,
};

/** Inside a transaction, which holds what it finds. */
export function freePending(session: Session, claim: PendingClaim, now: Date): Promise<PendingColumns[]> {
  const { tenant, agent, limit, key } = claim;
  const only = [key?.root, key?.sender, key?.handoffId, key?.attempt];
  return session.query<PendingColumns>(FREE, [tenant, agent, toUtc(now), limit, ...only]);
}

export const pendingTable = (ask: Ask) => ({
  async ofTask(tenant: string, taskId: string): Promise<PendingOffer | null> {
    const [row] = await ask<PendingColumns>(OF_TASK, [tenant, taskId]);
    return row === undefined ? null : toPending(row);
  },
  awaited: async (tenant: string, now: Date, limit: number | undefined): Promise<PendingOffer[]> =>
    (await ask<PendingColumns>(AWAITED, [tenant, toUtc(now), patienceEnds(now), limit ?? null])).map(
      toPending,
    ),
  /** Undecided ones, oldest first. */
  async list(tenant: string, { toAgent, state, limit }: PendingFilter): Promise<PendingOffer[]> {
    const given = { to_agent: toAgent, state };
    const where = " AND state <> 'decided'";
    const found = await ask<PendingColumns>(
      ...listOf('pending', tenant, given, { where, order: 'ord', limit }),
    );
    return found.map(toPending);
  },
});
