import {
  type AcceptanceKey,
  actsFor,
  type CaseRef,
  isSameCase,
  parsePerson,
  sha256Hex,
  toUtc,
} from '../../core/index.js';
import type { AuditFact, CaseRow, DecisionRow, OfferRow, Transfer, WorkItem } from '../model.js';
import { attemptOf, boundsOf } from './facts.js';
import type { Change, Guard, LedgerView } from './ruling.js';

/*
 * In a `separate` kind a change of owner that happened in another ledger is known here by its receipt.
 *   own open offer, owner and epoch as in the offer -> released: owner and epoch move, the offer closes `accepted`
 *   owner and epoch as the transfer begins with      -> learned: owner and epoch move
 *   case not known here                              -> learned with the import; nothing has to move
 * Each is kept, so that the next envelope can prove the chain; a case has one for each epoch.
 * An agent and its persons are one party to everybody else: what changes between them is proved by the last of their node's receipts, which
 * may begin at any later epoch than the one that is known here. From one party to another the epoch rises by exactly one.
 */

/** One step of a case, with the case after it. */
export interface Step {
  readonly to: CaseRow;
  readonly changes: readonly Change[];
  readonly fact: AuditFact;
}

export function sameKey(a: AcceptanceKey, b: AcceptanceKey): boolean {
  return a.sender === b.sender && a.handoffId === b.handoffId && a.attempt === b.attempt;
}

/** Whether both owners are of one node: an agent and its person, or two persons of it. */
export function isInside({ key, toAgent }: Pick<Transfer, 'key' | 'toAgent'>): boolean {
  return actsFor(key.sender) === actsFor(toAgent);
}

/** Whether the transfer is about this case at all, and one step. */
function isStepOf(ref: CaseRef, transfer: Transfer): boolean {
  const { key, ref: its, toAgent, oldEpoch, newEpoch } = transfer;
  return (
    isSameCase(its, ref) &&
    key.tenant === ref.tenant &&
    key.root === ref.root &&
    newEpoch === oldEpoch + 1 &&
    toAgent !== key.sender &&
    (isInside(transfer) || (parsePerson(key.sender) === null && parsePerson(toAgent) === null))
  );
}

/** Whether the transfer begins with this owner at this epoch. */
export function beginsAt(owner: string, epoch: number, { key, oldEpoch, toAgent }: Transfer): boolean {
  if (actsFor(key.sender) !== actsFor(owner)) return false;
  return oldEpoch === epoch
    ? !isInside({ key, toAgent }) || key.sender === owner
    : isInside({ key, toAgent }) && oldEpoch > epoch;
}

/** Whether the transfer begins with the owner and epoch of the case. */
export function begins(row: CaseRow, transfer: Transfer): boolean {
  return isStepOf(row.ref, transfer) && beginsAt(row.owner, row.epoch, transfer);
}

/** Whether the receipt is for exactly this offer. */
export function isFor(offer: OfferRow, transfer: Transfer): boolean {
  return (
    isStepOf(offer.ref, transfer) &&
    sameKey(transfer.key, offer.key) &&
    transfer.toAgent === offer.toAgent &&
    transfer.oldEpoch === offer.epoch &&
    transfer.digest === offer.digest
  );
}

/** The last part of the provenance, as far as it leads without a break to `agent` at `epoch`. */
export function chainTo(
  provenance: readonly Transfer[],
  ref: CaseRef,
  agent: string,
  epoch: number,
): Transfer[] {
  const chain: Transfer[] = [];
  for (const transfer of provenance.toReversed()) {
    const [next] = chain;
    const leads =
      next === undefined
        ? actsFor(transfer.toAgent) === agent && transfer.newEpoch === epoch
        : beginsAt(transfer.toAgent, transfer.newEpoch, next);
    if (!isStepOf(ref, transfer) || !leads) break;
    chain.unshift(transfer);
  }
  return chain;
}

/** The receiver's acceptance takes hold here: what was this ledger's to own is the receiver's. */
export function released(view: LedgerView, row: CaseRow, offer: OfferRow, transfer: Transfer): Step {
  const { key, toAgent, oldEpoch, newEpoch, digest, receipt, receiptKey } = transfer;
  const at = toUtc(view.now);
  const to = moved(row, transfer, offer.contract);
  const decision: DecisionRow = {
    key: offer.key,
    caseId: row.ref.caseId,
    verdict: 'accepted',
    code: null,
    digest,
    answer: receipt,
    taskId: null,
    epochBefore: oldEpoch,
    epochAfter: newEpoch,
    decidedAt: at,
  };
  const superseded = view.openWork(row.ref);
  return {
    to,
    changes: [
      { do: 'move_case', guard: guardOf(row), to },
      { do: 'add_decision', row: decision },
      {
        do: 'set_offer',
        from: offer.state,
        row: { ...offer, state: 'accepted', closedAt: at, receipt, receiptKey },
      },
      ...superseded.map(
        (item): Change => ({ do: 'supersede_work', row: { ...item, state: 'superseded', settledAt: at } }),
      ),
      { do: 'add_transfer', row: transfer },
    ],
    fact: {
      type: 'handoff_released',
      actor: key.sender,
      ...attemptOf(key),
      epochBefore: oldEpoch,
      epochAfter: newEpoch,
      rule: 'H6',
      digest,
      data: {
        toAgent,
        contract: offer.contract,
        receiptDigest: sha256Hex(receipt),
        answer: sha256Hex(decision.answer),
        bounds: boundsOf(to),
        superseded: superseded.map((item) => item.id),
      },
    },
  };
}

/**
 * A change of owner of which this ledger has no offer: it only follows. `by`: who brought the receipt; `work`: what was left to do
 * for the owner before, as it is then.
 */
export function learned(row: CaseRow, transfer: Transfer, by: string, work: readonly WorkItem[] = []): Step {
  const inside = isInside(transfer);
  // Under which contract, only the two of them know.
  const to = inside
    ? { ...row, owner: transfer.toAgent, epoch: transfer.newEpoch }
    : moved(row, transfer, null);
  const superseded = work.length === 0 ? {} : { superseded: work.map(({ id }) => id) };
  return {
    to,
    changes: [
      ...moves(row, to, transfer),
      ...work.map((item): Change => ({ do: 'supersede_work', row: item })),
    ],
    fact: factOf(transfer, by, {
      moves: true,
      bounds: boundsOf(to),
      ...(inside ? { inside } : {}),
      ...superseded,
    }),
  };
}

/** The case moves by a transfer, and that is kept; one that leaves epochs out moves it only because it is. */
export function moves(row: CaseRow, to: CaseRow, transfer: Transfer): Change[] {
  const guard = guardOf(row);
  if (to.epoch !== row.epoch + 1) return [{ do: 'leap_case', guard, to, transfer }];
  return [
    { do: 'move_case', guard, to },
    { do: 'add_transfer', row: transfer },
  ];
}

/** A change of owner before the case was known here. */
export function kept(transfer: Transfer, by: string): Omit<Step, 'to'> {
  return {
    changes: [{ do: 'add_transfer', row: transfer }],
    fact: factOf(transfer, by, { moves: false }),
  };
}

export function guardOf({ ref, owner, epoch }: CaseRow): Guard {
  return { ref, owner, epoch };
}

/** As the next envelope will have to say it: the former owner is one more hop, and one handover is used. */
function moved(row: CaseRow, { toAgent, newEpoch }: Transfer, contract: string | null): CaseRow {
  const { hops, tasksLeft } = row;
  return {
    ...row,
    owner: toAgent,
    epoch: newEpoch,
    contract,
    hops: [...hops, actsFor(row.owner)],
    tasksLeft: tasksLeft - 1,
  };
}

function factOf(
  { key, toAgent, oldEpoch, newEpoch, digest, receipt }: Transfer,
  by: string,
  data: Readonly<Record<string, unknown>>,
): AuditFact {
  return {
    type: 'transfer_learned',
    actor: by,
    ...attemptOf(key),
    epochBefore: oldEpoch,
    epochAfter: newEpoch,
    rule: 'H2',
    digest,
    data: { from: key.sender, toAgent, receiptDigest: sha256Hex(receipt), ...data },
  };
}
