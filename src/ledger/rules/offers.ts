import {
  type AcceptanceKey,
  actsFor,
  HoldfastError,
  handoffIdOf,
  parsePerson,
  sha256Hex,
  toUtc,
} from '../../core/index.js';
import type {
  DecideResult,
  IntendOfferCommand,
  RecordReceiptCommand,
  VoidOfferCommand,
} from '../commands.js';
import type { OfferRow, OfferState } from '../model.js';
import { planData, stepped } from './candidates.js';
import { asOf, inFlight } from './effects.js';
import { atEpoch, attemptOf, loggableId, refuse } from './facts.js';
import { fence, isRefused } from './fence.js';
import { peersOf, waivedIn } from './incarnation.js';
import { isAcross, isSeparate } from './kinds.js';
import { notOwner } from './ownership.js';
import { canceled } from './pending.js';
import type { Change, LedgerView, Rule, Ruling, StoredEffect, StoredOffer } from './ruling.js';
import { tombstoneOf } from './tombstone.js';

/*
 * An offer is one attempt; its bytes never change; a case has at most one that is open.
 *   (none)   -> intended              the intent and the bytes, committed before anything is sent
 *   intended -> offered               before the bytes leave: from here on they may have arrived
 *   open     -> accepted | rejected   by the decision, in the decision's transaction (acceptance.ts, decisions.ts)
 *   open     -> withdrawn | expired   by a void, which inserts the decision (a tombstone) in the same transaction; where a person
 *                                     takes the case over, that is the transaction in which the owner changes (people.ts)
 * Open are intended, offered and in_doubt; the other states are final, each with a decision under the same key.
 * In one shared ledger nothing makes an offer `in_doubt`: the ledger itself always knows. Where the receiver has a ledger of its own,
 * only what that one has decided closes an offer (closing.ts).
 */

const OPEN_STATES: readonly OfferState[] = ['intended', 'offered', 'in_doubt'];

/** Whether no decision on the offer is known: the case has no room for another. */
export function isOpen(offer: OfferRow): boolean {
  return OPEN_STATES.includes(offer.state);
}

/** Whether its sender has something left to do: it is open, or accepted and the receipt is not kept yet. */
export function isUnfinished(offer: OfferRow): boolean {
  return isOpen(offer) || (offer.state === 'accepted' && offer.receipt === null);
}

/** An offer as the port shows it. */
export function offerRow(offer: StoredOffer): OfferRow {
  const { intendedSeq: _, ...row } = offer;
  return row;
}

/** The offer closes with its decision, where this ledger has it. */
export function closedBy(
  offer: OfferRow | null,
  to: Pick<OfferRow, 'state' | 'code' | 'closedAt'>,
): Change[] {
  return offer === null ? [] : [{ do: 'set_offer', from: offer.state, row: { ...offer, ...to } }];
}

/** Where the claim on an offer stands; its tenant is a column of its own. */
export function claimIdOf({ root, sender, handoffId, attempt }: AcceptanceKey): string {
  return [root, sender, handoffId, attempt].join(' ');
}

export function claimOf(key: AcceptanceKey, holder: string): Extract<Change, { do: 'claim' }> {
  return { do: 'claim', row: { tenant: key.tenant, what: 'offer', id: claimIdOf(key), holder } };
}

export const intendOffer: Rule<IntendOfferCommand, OfferRow> = (view, command) => {
  const write = 'intend_offer';
  const { ref, writer, epoch, attempt, toAgent, approval } = command;
  const sender = actsFor(writer);
  if (actsFor(toAgent) === sender) throw new HoldfastError('usage', 'An offer goes to another agent.');
  if (approval?.person !== (parsePerson(writer) === null ? undefined : writer)) {
    throw new HoldfastError(
      'usage',
      'What a person owns is offered with their approval, and nothing else is.',
    );
  }
  if (approval !== undefined && command.plan !== undefined) {
    throw new HoldfastError('usage', 'A person approves of one offer, and of no list of candidates.');
  }
  if (Number.isNaN(Date.parse(command.acceptBy)))
    throw new HoldfastError('usage', 'accept_by is a UTC time.');
  const standing = fence(view, write, command);
  if (isRefused(standing)) return standing;
  // Of a receiver with a ledger of its own, the envelope is all that it learns of the keys that are taken.
  if (command.effects === undefined && isSeparate(view, standing.case)) {
    throw new HoldfastError('usage', 'An offer of a separate kind says which effects its envelope lists.');
  }
  if (view.openOffer(ref) !== null) return refuse({ write, ref, writer, code: 'offer_open' });
  const peers = peersOf(view, view.kind(ref.tenant, standing.case.kind), writer);
  if (peers.missing !== null) {
    return refuse({ write, ref, writer, code: 'peers_unanswered', data: peers.missing });
  }
  const effects = view.effects(ref);
  const flying = inFlight(view, effects);
  if (flying !== undefined) {
    return refuse({ write, ref, writer, code: 'effect_in_flight', data: { key: flying.key } });
  }
  const changed = unseen(view, effects, command.effects);
  if (changed !== undefined) {
    return refuse({ write, ref, writer, code: 'case_changed', data: { key: changed.key } });
  }
  const handoff = { tenant: ref.tenant, root: ref.root, sender };
  const handoffId = handoffIdOf(ref.caseId, epoch);
  const last = view.lastAttempt({ ...handoff, handoffId });
  if (attempt !== last + 1) {
    return refuse({ write, ref, writer, code: 'offer_decided', data: { presented: attempt, current: last } });
  }
  const plan = command.plan === undefined ? null : stepped(view, command, attempt, command.plan);
  if (plan === 'plan_ended') return refuse({ write, ref, writer, code: plan, data: { attempt } });
  const key: AcceptanceKey = { ...handoff, handoffId, attempt };
  const row: StoredOffer = {
    key,
    ref,
    kind: standing.case.kind,
    toAgent,
    contract: command.contract,
    skill: command.skill,
    epoch,
    digest: command.digest,
    message: command.message,
    state: 'intended',
    code: null,
    acceptBy: command.acceptBy,
    intendedAt: toUtc(view.now),
    closedAt: null,
    withheld: command.withheld,
    receipt: null,
    receiptKey: null,
    intendedSeq: view.nextSeq(ref),
  };
  const { contract, skill, acceptBy, withheld, loggable, holder } = command;
  return {
    changes: [
      { do: 'add_offer', guard: standing.guard, row },
      ...(holder !== undefined && view.alive(holder) ? [claimOf(key, holder)] : []),
      ...(plan === null ? [] : [{ do: 'set_plan', row: plan } as const]),
    ],
    audit: {
      ref,
      facts: [
        {
          type: 'offer_intended',
          actor: sender,
          ...attemptOf(key),
          ...atEpoch(epoch),
          rule: 'H4',
          digest: command.digest,
          data: {
            ...{ toAgent, contract, skill, acceptBy, withheld, loggable },
            ...waivedIn(peers),
            ...(plan === null ? {} : { plan: planData(plan) }),
            ...(approval === undefined ? {} : { approval: { ...approval } }),
          },
        },
      ],
    },
    result: offerRow(row),
  };
};

/** An effect that is not what the envelope says: it was started or settled after the envelope's effects had been read. */
function unseen(
  { now }: LedgerView,
  effects: readonly StoredEffect[],
  seen: IntendOfferCommand['effects'],
): StoredEffect | undefined {
  return effects.find(
    (effect) =>
      seen?.some(
        ({ key, state, startedSeq }) =>
          key === effect.key && startedSeq === effect.startedSeq && state === asOf(effect, now).state,
      ) === false,
  );
}

export const markOffered: Rule<AcceptanceKey, OfferRow> = (view, key) => {
  const offer = view.offer(key);
  if (offer === null) throw new HoldfastError('offer_unknown');
  const { ref } = offer;
  if (isOpen(offer) && offer.state !== 'intended') {
    return { changes: [], audit: null, result: offerRow(offer) };
  }
  if (offer.state !== 'intended') {
    return refuse({
      write: 'mark_offered',
      ref,
      writer: key.sender,
      code: 'offer_decided',
      data: { state: offer.state },
    });
  }
  const row: OfferRow = { ...offerRow(offer), state: 'offered' };
  return {
    changes: [{ do: 'set_offer', from: 'intended', row }],
    audit: {
      ref,
      facts: [
        {
          type: 'offer_offered',
          actor: key.sender,
          ...attemptOf(key),
          ...atEpoch(offer.epoch),
          digest: offer.digest,
        },
      ],
    },
    result: row,
  };
};

/** A void past `accept_by` may be recorded as `expired`; before it, it is a withdrawal whatever was asked. */
export const voidOffer: Rule<VoidOfferCommand, DecideResult> = (view, command) => {
  const { key, writer } = command;
  const offer = view.offer(key);
  if (offer === null) throw new HoldfastError('offer_unknown');
  const { ref, epoch } = offer;
  const refused = { write: 'void_offer', ref, writer };
  if (writer !== key.sender) return refuse({ ...refused, code: 'not_owner' });
  const decided = view.decision(key);
  if (decided !== null) {
    return { changes: [], audit: null, result: { outcome: 'decided', decision: decided } };
  }
  if (isAcross(view, offer)) return refuse({ ...refused, code: 'withdraw_needed' });
  const row = view.case(ref);
  if (row === null) return refuse({ ...refused, code: 'not_owner' });
  if (actsFor(row.owner) !== writer || row.epoch !== epoch) return refuse({ ...refused, ...notOwner(row) });
  const closedAt = toUtc(view.now);
  const state = command.expired && view.now.getTime() > Date.parse(offer.acceptBy) ? 'expired' : 'withdrawn';
  const task = canceled(view, key, command.answer);
  const decision = tombstoneOf(offer, command.answer, task.taskId, closedAt);
  return {
    changes: [
      { do: 'add_decision', row: decision },
      ...task.changes,
      { do: 'set_offer', from: offer.state, row: { ...offerRow(offer), state, closedAt } },
    ],
    audit: {
      ref,
      facts: [
        {
          type: 'offer_closed',
          actor: writer,
          ...attemptOf(key),
          ...atEpoch(epoch),
          rule: 'H4',
          digest: offer.digest,
          data: {
            state,
            reason: loggableId(command.reason),
            answer: sha256Hex(command.answer),
            ...(task.taskId === null ? {} : { taskId: task.taskId }),
          },
        },
      ],
    },
    result: { outcome: 'stored', decision },
  };
};

export const recordReceipt: Rule<RecordReceiptCommand, OfferRow> = (view, command) => {
  const { key, receipt, receiptKey } = command;
  const offer = view.offer(key);
  if (offer === null) throw new HoldfastError('offer_unknown');
  const { ref, state } = offer;
  if (state !== 'accepted') {
    return refuse({
      write: 'record_receipt',
      ref,
      writer: key.sender,
      code: 'offer_decided',
      data: { state },
    });
  }
  return keepReceipt(offer, receipt, receiptKey);
};

/** Of an accepted offer. The first verified receipt stays: another would prove the same acceptance. */
export function keepReceipt(offer: StoredOffer, receipt: string, receiptKey: string): Ruling<OfferRow> {
  const { key, ref } = offer;
  if (offer.receipt !== null) return { changes: [], audit: null, result: offerRow(offer) };
  const row: OfferRow = { ...offerRow(offer), receipt, receiptKey };
  return {
    changes: [{ do: 'set_offer', from: 'accepted', row }],
    audit: {
      ref,
      facts: [
        {
          type: 'receipt_verified',
          actor: key.sender,
          ...attemptOf(key),
          rule: 'H6',
          digest: offer.digest,
          data: { receiptDigest: sha256Hex(receipt) },
        },
      ],
    },
    result: row,
  };
}
