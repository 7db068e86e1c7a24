import {
  type AcceptanceKey,
  type CaseRef,
  HoldfastError,
  isSameCase,
  sha256Hex,
  toUtc,
} from '../../core/index.js';
import type { Principal } from '../../trust/index.js';
import type { AuditFact, CaseRow, DecisionRow, OfferRow, TaskRow, WorkItem } from '../model.js';
import type { AcceptCommand, AcceptResult, DecideResult, DecisionTask, RejectCommand } from '../port.js';
import { inFlight } from './effects.js';
import { atEpoch, attemptOf, boundsOf, loggableData } from './facts.js';
import { isOpen, offerRow } from './offers.js';
import { judgeOwnership } from './ownership.js';
import { narrow } from './policy.js';
import type { Change, LedgerView, Rule, Ruling } from './ruling.js';

/*
 * A decision is one row under the acceptance key (tenant, root, authenticated sender, handoff id, attempt), and absorbing.
 *   (none) -> accepted    owner and epoch move, the work item appears, the offer closes: one transaction
 *   (none) -> rejected    stored before it is answered; the ledger's offer under the same bytes closes with it
 *   (none) -> tombstone   a void (offers.ts): answers any bytes that still arrive under the key
 * Whatever arrives later under the key changes nothing: the same bytes get the stored decision, others are a conflict.
 */

interface Delivery {
  readonly key: AcceptanceKey;
  readonly ref: CaseRef;
  readonly principal: Principal;
  readonly digest: string;
}

export const accept: Rule<AcceptCommand, AcceptResult> = (view, command) => {
  checkKey(command);
  const before = alreadyDecided(view, command);
  if (before !== null) return before;
  const { key, ref, epoch: presented, principal } = command;
  const row = view.case(ref);
  const refusal = judgeOwnership(row, presented, principal.agent);
  if (row === null || refusal !== null) {
    return refused(refusal?.code ?? 'case_unknown', refusal?.data ?? { presented });
  }
  const current = row.epoch;
  if (row.kind !== command.kind || view.kind(ref.tenant, row.kind) === null) {
    return refused('kind_unknown', { presented, current });
  }
  if (command.toAgent === row.owner) throw new HoldfastError('usage', 'An offer goes to another agent.');
  const own = view.offer(key);
  // A case has one open offer, so it need not be looked for where this one is it.
  const open = own !== null && isOpen(own) && isSameCase(own.ref, ref) ? own : view.openOffer(ref);
  // None open: the sender wrote no row, for a closed one has a decision and was answered above.
  if (open !== null && !sameKey(open.key, key)) return refused('offer_closed', { presented, current });
  // Also where it is no time at all.
  if (!(view.now.getTime() <= Date.parse(command.acceptBy))) {
    return refused('offer_expired', { acceptBy: command.acceptBy, now: toUtc(view.now) });
  }
  const effects = view.effects(ref);
  const flying = inFlight(view, effects);
  if (flying !== undefined) {
    throw new HoldfastError('effect_in_flight', undefined, { data: { key: flying.key } });
  }
  const changed = open === null ? undefined : effects.find((effect) => effect.startedSeq > open.intendedSeq);
  if (changed !== undefined) return refused('case_changed', { key: changed.key, presented, current });
  return acceptance(view, command, row, open === null ? null : offerRow(open));
};

function acceptance(
  view: LedgerView,
  command: AcceptCommand,
  row: CaseRow,
  offer: OfferRow | null,
): Ruling<AcceptResult> {
  const { key, ref, toAgent, contract, principal, digest, task } = command;
  const at = toUtc(view.now);
  const [epochBefore, epochAfter] = [row.epoch, row.epoch + 1];
  const guard = { ref, owner: row.owner, epoch: row.epoch };
  const to: CaseRow = {
    ...row,
    owner: toAgent,
    epoch: epochAfter,
    contract,
    constraints: narrow(row.constraints, command.constraints),
    hops: command.hops,
    tasksLeft: command.tasksLeft,
  };
  const decision: DecisionRow = {
    key,
    caseId: ref.caseId,
    verdict: 'accepted',
    code: null,
    digest,
    answer: command.answer,
    taskId: task.id,
    epochBefore,
    epochAfter,
    decidedAt: at,
  };
  const work: WorkItem = {
    id: command.workId,
    ref,
    key,
    owner: toAgent,
    epoch: epochAfter,
    contract,
    state: 'open',
    envelope: command.envelope,
    result: null,
    createdAt: at,
    settledAt: null,
  };
  const superseded = view.openWork(ref);
  const changes: Change[] = [
    { do: 'move_case', guard, to },
    { do: 'add_task', row: taskOf(task, key, principal) },
    { do: 'add_decision', row: decision },
    ...closeOffer(offer, { state: 'accepted', code: null, closedAt: at }),
    ...superseded.map(
      (item): Change => ({ do: 'supersede_work', row: { ...item, state: 'superseded', settledAt: at } }),
    ),
    { do: 'add_work', guard: { ref, owner: toAgent, epoch: epochAfter }, row: work },
  ];
  const fact: AuditFact = {
    type: 'handoff_accepted',
    actor: principal.agent,
    ...attemptOf(key),
    epochBefore,
    epochAfter,
    rule: 'H4',
    digest,
    data: {
      toAgent,
      contract,
      workId: work.id,
      taskId: task.id,
      tokenId: principal.tokenId,
      answer: sha256Hex(command.answer),
      bounds: boundsOf(to),
      superseded: superseded.map((item) => item.id),
      loggable: command.loggable,
    },
  };
  return { changes, audit: { ref, facts: [fact] }, result: { outcome: 'accepted', decision, work } };
}

export const reject: Rule<RejectCommand, DecideResult> = (view, command) => {
  checkKey(command);
  const before = alreadyDecided(view, command);
  if (before !== null) return before;
  const { key, ref, digest, code, principal, task } = command;
  const at = toUtc(view.now);
  const epoch = view.case(ref)?.epoch ?? null;
  const decision: DecisionRow = {
    key,
    caseId: ref.caseId,
    verdict: 'rejected',
    code,
    digest,
    answer: command.answer,
    taskId: task.id,
    epochBefore: epoch,
    epochAfter: epoch,
    decidedAt: at,
  };
  const offer = view.offer(key);
  const open = offer !== null && isOpen(offer) ? offerRow(offer) : null;
  return {
    changes: [
      { do: 'add_task', row: taskOf(task, key, principal) },
      { do: 'add_decision', row: decision },
      ...closeOffer(open, { state: 'rejected', code, closedAt: at }),
    ],
    audit: {
      ref,
      facts: [
        {
          type: 'handoff_rejected',
          actor: principal.agent,
          ...attemptOf(key),
          ...(epoch === null ? {} : atEpoch(epoch)),
          rule: code,
          digest,
          data: {
            taskId: task.id,
            tokenId: principal.tokenId,
            answer: sha256Hex(command.answer),
            particulars: loggableData(command.data),
          },
        },
      ],
    },
    result: { outcome: 'stored', decision },
  };
};

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
function alreadyDecided(
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

/** Nothing is stored, audit included: the caller stores the rejection, and that is the record. */
function refused(
  code: Extract<AcceptResult, { outcome: 'refused' }>['code'],
  data: Readonly<Record<string, string | number>>,
): Ruling<AcceptResult> {
  return { changes: [], audit: null, result: { outcome: 'refused', code, data } };
}

function closeOffer(offer: OfferRow | null, to: Pick<OfferRow, 'state' | 'code' | 'closedAt'>): Change[] {
  return offer === null ? [] : [{ do: 'set_offer', from: offer.state, row: { ...offer, ...to } }];
}

function taskOf(task: DecisionTask, key: AcceptanceKey, principal: Principal): TaskRow {
  return { ...task, tenant: key.tenant, peer: principal.agent, version: 1, handoffId: key.handoffId };
}

function sameKey(a: AcceptanceKey, b: AcceptanceKey): boolean {
  return a.sender === b.sender && a.handoffId === b.handoffId && a.attempt === b.attempt;
}

/** The key is scoped to the authenticated peer: no request can reach into another sender's or tenant's decisions. */
function checkKey({ key, ref, principal }: Delivery): void {
  const scoped =
    key.sender === principal.agent &&
    key.tenant === principal.tenant &&
    ref.tenant === key.tenant &&
    ref.root === key.root;
  if (!scoped) throw new HoldfastError('usage', 'The acceptance key is not that of the authenticated peer.');
}
