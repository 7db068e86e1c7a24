import { type AcceptanceKey, type CaseRef, HoldfastError } from '../../core/index.js';
import type { Principal } from '../../trust/index.js';
import type { DecideResult } from '../commands.js';
import type { AuditFact } from '../model.js';
import { attemptOf } from './facts.js';
import type { LedgerView, Rule, Ruling } from './ruling.js';

/*
 * What arrives under an acceptance key once it is decided changes nothing: the same bytes get the stored decision, others are a
 * conflict.
 */

export interface Delivery {
  readonly key: AcceptanceKey;
  readonly ref: CaseRef;
  readonly principal: Principal;
  readonly digest: string;
}

export interface DeliveryCommand extends Delivery {
  readonly type: 'delivery_repeated' | 'delivery_conflict';
}

export const recordDelivery: Rule<DeliveryCommand, void> = (view, command) => {
  checkKey(command);
  const caseId = view.decision(command.key)?.caseId ?? command.ref.caseId;
  const ref = { ...command.ref, caseId };
  return { changes: [], audit: { ref, facts: [delivered(command, command.type)] }, result: undefined };
};

/** Either the stored decision is the answer, or the key is in use with other bytes, or nothing stands yet (`null`). */
export function alreadyDecided(
  view: LedgerView,
  delivery: Delivery,
): Ruling<Exclude<DecideResult, { outcome: 'stored' }>> | null {
  const { key, digest } = delivery;
  const decision = view.decision(key);
  if (decision !== null) {
    const ref = { tenant: key.tenant, root: key.root, caseId: decision.caseId };
    return decision.digest === null || decision.digest === digest
      ? {
          changes: [],
          audit: { ref, facts: [delivered(delivery, 'delivery_repeated')] },
          result: { outcome: 'decided', decision },
        }
      : conflict(delivery, ref);
  }
  const pending = view.pending(key);
  if (pending !== null && pending.digest !== digest) return conflict(delivery, pending.ref);
  const offer = view.offer(key);
  return offer !== null && offer.digest !== digest ? conflict(delivery, offer.ref) : null;
}

function conflict(delivery: Delivery, ref: CaseRef): Ruling<{ readonly outcome: 'conflict' }> {
  return {
    changes: [],
    audit: { ref, facts: [delivered(delivery, 'delivery_conflict')] },
    result: { outcome: 'conflict' },
  };
}

function delivered(delivery: Delivery, type: 'delivery_repeated' | 'delivery_conflict'): AuditFact {
  const { key, principal, digest } = delivery;
  return {
    type,
    actor: principal.agent,
    ...attemptOf(key),
    rule: type === 'delivery_repeated' ? 'H4' : 'duplicate_conflict',
    digest,
    data: { tokenId: principal.tokenId },
  };
}

/** The key is scoped to the authenticated peer: no request can reach into another sender's or tenant's decisions. */
export function checkKey({ key, ref, principal }: Omit<Delivery, 'digest'>): void {
  const scoped =
    key.sender === principal.agent &&
    key.tenant === principal.tenant &&
    ref.tenant === key.tenant &&
    ref.root === key.root;
  if (!scoped) throw new HoldfastError('usage', 'The acceptance key is not that of the authenticated peer.');
}
