import { type AcceptanceKey, type CaseRef, isSameCase, sha256Hex, toUtc } from '../../core/index.js';
import type { AuditFact, CaseRow, DecisionRow, OfferRow, Transfer, WorkItem } from '../model.js';
import { attemptOf, boundsOf } from './facts.js';
import type { Change, Guard, LedgerView } from './ruling.js';

/*
 * In a `separate` kind a change of owner that happened in another ledger is known here by its receipt.
 *   own open offer, owner and epoch as in the offer -> released: owner and epoch move, the offer closes `accepted`
 *   owner and epoch as the transfer begins with      -> learned: owner and epoch move
 *   case not known here                              -> learned with the import; nothing has to move
 * Each is kept, so that the next envelope can prove the chain; a case has one for each epoch.
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

/** Whether the transfer is about this case at all, and one step. */
function isStepOf(ref: CaseRef, { key, ref: its, toAgent, oldEpoch, newEpoch }: Transfer): boolean {
  return (
    isSameCase(its, ref) &&
    key.tenant === ref.tenant &&
    key.root === ref.root &&
    newEpoch === oldEpoch + 1 &&
    toAgent !== key.sender
  );
}

/** Whether the transfer begins with the owner and epoch of the case. */
export function begins(row: CaseRow, transfer: Transfer): boolean {
  const { key, oldEpoch } = transfer;
  return isStepOf(row.ref, transfer) && key.sender === row.owner && oldEpoch === row.epoch;
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
  let [owner, at] = [agent, epoch];
  for (const transfer of provenance.toReversed()) {
    if (!isStepOf(ref, transfer) || transfer.toAgent !== owner || transfer.newEpoch !== at) break;
    chain.unshift(transfer);
    [owner, at] = [transfer.key.sender, transfer.oldEpoch];
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
  // Under which contract, only the two of them know.
  const to = moved(row, transfer, null);
  const superseded = work.length === 0 ? {} : { superseded: work.map(({ id }) => id) };
  return {
    to,
    changes: [
      { do: 'move_case', guard: guardOf(row), to },
      ...work.map((item): Change => ({ do: 'supersede_work', row: item })),
      { do: 'add_transfer', row: transfer },
    ],
    fact: factOf(transfer, by, { moves: true, bounds: boundsOf(to), ...superseded }),
  };
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
    hops: [...hops, row.owner],
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
