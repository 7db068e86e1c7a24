import type { Logger } from '../core/index.js';
import type { AttentionItem, LedgerStore } from '../ledger/index.js';

/** Of one tenant; what stands behind them is logged once they are settled. */
const MAX_ITEMS = 1000;

export interface AttentionLogParts {
  readonly self: string;
  readonly ledger: Pick<LedgerStore, 'listAttention'>;
  readonly logger: Logger;
}

/** Logs once what only a person can settle; it stays in the list until somebody has. */
export function attentionLog({ self, ledger, logger }: AttentionLogParts): (tenant: string) => Promise<void> {
  const known = new Map<string, ReadonlySet<string>>();
  return async (tenant) => {
    const items = (await ledger.listAttention(tenant, MAX_ITEMS)).filter((item) => concerns(item, self));
    const before = known.get(tenant);
    for (const item of items) if (!before?.has(nameOf(item))) log(item, logger);
    known.set(tenant, new Set(items.map(nameOf)));
  };
}

/** Agents that share a ledger each speak of the effects that they started, and of their offers. */
function concerns(item: AttentionItem, self: string): boolean {
  if (item.what === 'peer_unanswered') return item.data.agent === self;
  if (item.what === 'case_quarantined') return true;
  if (item.what === 'decision_waiting') return item.data.toAgent === self;
  return ('sender' in item.data ? item.data.sender : item.data.owner) === self;
}

function nameOf({ what, ref, since, data }: AttentionItem): string {
  if (ref === null) return JSON.stringify([what, data.peer, data.incarnation]);
  const one = 'key' in data ? data.key : what === 'decision_waiting' ? [data.sender, data.attempt] : null;
  return JSON.stringify([what, ref.root, ref.caseId, since, one]);
}

function log(item: AttentionItem, logger: Logger): void {
  if (item.what === 'peer_unanswered') {
    const { peer, incarnation } = item.data;
    logger.warn(
      { peer, incarnation, since: item.since },
      'a peer has not said what it holds since this agent was started; cases that it can have wait for it',
    );
    return;
  }
  const fields = { case: item.ref.caseId, root: item.ref.root, since: item.since };
  switch (item.what) {
    case 'effect_unknown':
      logger.warn({ ...fields, key: item.data.key }, 'an effect is unknown; a person has to settle it');
      break;
    case 'case_quarantined':
      logger.warn({ ...fields, reason: item.data.reason }, 'a case is quarantined; a person has to act');
      break;
    case 'question_open': {
      const { handoffId, attempt, n } = item.data;
      logger.warn(
        { ...fields, handoff: handoffId, attempt, question: n },
        'a receiver asks something before it decides',
      );
      break;
    }
    case 'decision_waiting': {
      const { handoffId: handoff, attempt, sender: peer, acceptBy } = item.data;
      logger.warn(
        { ...fields, handoff, attempt, peer, acceptBy },
        'an offer waits for a decision; a person can accept or reject it',
      );
      break;
    }
    case 'candidates_exhausted':
      logger.warn(
        { ...fields, reason: item.data.reason },
        'no candidate is left for a case; a person has to act',
      );
      break;
    case 'offer_in_doubt':
    case 'risk_double_owner': {
      const { handoffId: handoff, attempt, toAgent: peer } = item.data;
      const doubt = 'an offer is in doubt: its receiver does not answer, and may own the case';
      const risk = 'a case was taken over by force while its offer was in doubt; two may own it';
      logger.warn({ ...fields, handoff, attempt, peer }, item.what === 'offer_in_doubt' ? doubt : risk);
      break;
    }
  }
}
