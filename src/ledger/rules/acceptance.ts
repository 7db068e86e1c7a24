import { actsFor, HoldfastError, isSameCase, parsePerson, sha256Hex, toUtc } from '../../core/index.js';
import type { AcceptCommand, AcceptResult, SeparateAcceptance } from '../commands.js';
import type { AuditFact, CaseRow, DecisionRow, OfferRow, WorkItem } from '../model.js';
import { type Arrival, arrive } from './arrival.js';
import { alreadyDecided, checkKey } from './deliveries.js';
import { inFlight } from './effects.js';
import { attemptOf, boundsOf } from './facts.js';
import { heardSender } from './incarnation.js';
import { inherit } from './inherit.js';
import { closedBy, isOpen, offerRow } from './offers.js';
import { judgeOwnership } from './ownership.js';
import { concluded } from './pending.js';
import { narrow } from './policy.js';
import type { Change, LedgerView, Rule, Ruling, StoredOffer } from './ruling.js';
import { guardOf, sameKey } from './transfers.js';

export const accept: Rule<AcceptCommand, AcceptResult> = (view, command) => {
  checkKey(command);
  const before = alreadyDecided(view, command);
  if (before !== null) return before;
  const { key, ref, epoch: presented, principal } = command;
  const { kind: named, toAgent, separate } = command;
  const incarnation = separate?.incarnation;
  const sender =
    incarnation === undefined ? [] : heardSender(view, command, { kind: named, toAgent, incarnation });
  const arrival = arrive(view, command);
  if ('audit' in arrival) return arrival;
  const { row, kind } = arrival;
  const refusal = judgeOwnership(row, presented, principal.agent);
  if (row === null || refusal !== null) {
    return refused(refusal?.code ?? 'case_unknown', refusal?.data ?? { presented });
  }
  const current = row.epoch;
  if (row.kind !== command.kind || kind === null) {
    return refused('kind_unknown', { presented, current });
  }
  if (command.toAgent === actsFor(row.owner))
    throw new HoldfastError('usage', 'An offer goes to another agent.');
  // What a person owns their agent hands over with their approval, and with no other's.
  const person = parsePerson(row.owner) === null ? undefined : row.owner;
  if (command.approval?.person !== person) return refused('not_owner', { presented, current });
  const open = arrival.released ? null : openOffer(view, command);
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
  return acceptance(view, command, row, arrival, open === null ? null : offerRow(open), sender);
};

function acceptance(
  view: LedgerView,
  command: AcceptCommand,
  row: CaseRow,
  arrival: Arrival,
  offer: OfferRow | null,
  sender: readonly Change[],
): Ruling<AcceptResult> {
  const { key, ref, toAgent, contract, principal, digest, decidedBy } = command;
  const task = concluded(view, key, command.task, principal);
  // Only a case of a separate kind has come from another ledger, whatever the command brings.
  const separate = arrival.kind?.mode === 'separate' ? command.separate : undefined;
  const at = toUtc(view.now);
  const [epochBefore, epochAfter] = [row.epoch, row.epoch + 1];
  const guard = guardOf(row);
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
    taskId: task.taskId,
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
  const superseded = arrival.released ? [] : view.openWork(ref);
  const inheritance =
    separate === undefined
      ? { changes: [], facts: [] }
      : inherit(view, separate.effects, guardOf(to), guard, view.nextSeq(ref) + arrival.facts.length + 1);
  const changes: Change[] = [
    ...sender,
    ...arrival.changes,
    { do: 'move_case', guard, to },
    { do: 'add_decision', row: decision },
    ...task.changes,
    ...closedBy(offer, { state: 'accepted', code: null, closedAt: at }),
    ...superseded.map(
      (item): Change => ({ do: 'supersede_work', row: { ...item, state: 'superseded', settledAt: at } }),
    ),
    { do: 'add_work', guard: guardOf(to), row: work },
    ...(separate === undefined ? [] : [transferOf(command, separate)]),
    ...inheritance.changes,
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
      taskId: task.taskId,
      tokenId: principal.tokenId,
      answer: sha256Hex(command.answer),
      bounds: boundsOf(to),
      superseded: superseded.map((item) => item.id),
      loggable: command.loggable,
      ...(decidedBy === undefined ? {} : { decidedBy }),
      ...(separate === undefined ? {} : { receiptDigest: sha256Hex(separate.receipt) }),
      ...(command.approval === undefined ? {} : { approval: { ...command.approval } }),
    },
  };
  const facts = [...arrival.facts, fact, ...inheritance.facts];
  return { changes, audit: { ref, facts }, result: { outcome: 'accepted', decision, work } };
}

/** A case has one open offer, so it need not be looked for where it is the one that is to be accepted. */
function openOffer(view: LedgerView, { key, ref }: AcceptCommand): StoredOffer | null {
  const own = view.offer(key);
  return own !== null && isOpen(own) && isSameCase(own.ref, ref) ? own : view.openOffer(ref);
}

function transferOf(command: AcceptCommand, { receipt, receiptKey }: SeparateAcceptance): Change {
  const { key, ref, toAgent, epoch, digest } = command;
  const row = { key, ref, toAgent, oldEpoch: epoch, newEpoch: epoch + 1, digest, receipt, receiptKey };
  return { do: 'add_transfer', row };
}

/** Nothing is stored, audit included: the caller stores the rejection, and that is the record. */
function refused(
  code: Extract<AcceptResult, { outcome: 'refused' }>['code'],
  data: Readonly<Record<string, string | number>>,
): Ruling<AcceptResult> {
  return { changes: [], audit: null, result: { outcome: 'refused', code, data } };
}
