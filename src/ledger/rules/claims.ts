import { HoldfastError, toUtc } from '../../core/index.js';
import type { Claimed } from '../commands.js';
import type { OfferRow, WorkItem } from '../model.js';
import { claimIdOf, claimOf, offerRow } from './offers.js';
import type { ClaimRow, OfferClaim, Rule, WorkClaim } from './ruling.js';

/*
 * A process has a lease, and claims last as long as it does. They say only who works on something: what a process may do to a case is
 * fenced by owner and epoch, so one that was paused past its lease can do no harm. Nothing here concerns a case's audit.
 */

export interface HeartbeatCommand {
  readonly holder: string;
  readonly leaseMs: number;
}

export const heartbeat: Rule<HeartbeatCommand, void> = ({ now }, { holder, leaseMs }) => {
  if (holder === '' || !(leaseMs > 0)) throw new HoldfastError('usage', 'A lease has a holder and a length.');
  const until = toUtc(new Date(now.getTime() + leaseMs));
  return {
    changes: [{ do: 'keep_lease', holder, until, now: toUtc(now) }],
    audit: null,
    result: undefined,
  };
};

export const claimOffers: Rule<OfferClaim, OfferRow[]> = (view, command) => {
  const { tenant, agent, holder, key } = command;
  const own = key === undefined || (key.tenant === tenant && key.sender === agent);
  const offers = own && view.alive(holder) ? view.freeOffers(command) : [];
  return {
    changes: offers.map(({ key }) => claimOf(key, holder)),
    audit: null,
    result: offers.map(offerRow),
  };
};

export const claimWork: Rule<WorkClaim, WorkItem[]> = (view, command) => {
  const { tenant, holder } = command;
  const items = view.alive(holder) ? view.freeWork(command) : [];
  return {
    changes: items.map(({ id }) => ({ do: 'claim', row: { tenant, what: 'work', id, holder } })),
    audit: null,
    result: [...items],
  };
};

export interface ReleaseCommand {
  readonly holder: string;
  readonly claimed?: Claimed;
}

export const release: Rule<ReleaseCommand, void> = (_view, { holder, claimed }) => ({
  changes: [
    claimed === undefined ? { do: 'end_lease', holder } : { do: 'unclaim', row: claimRow(holder, claimed) },
  ],
  audit: null,
  result: undefined,
});

function claimRow(holder: string, claimed: Claimed): ClaimRow {
  return 'key' in claimed
    ? { tenant: claimed.key.tenant, what: 'offer', id: claimIdOf(claimed.key), holder }
    : { tenant: claimed.tenant, what: 'work', id: claimed.workId, holder };
}
