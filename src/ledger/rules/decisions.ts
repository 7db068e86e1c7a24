import { HoldfastError, sha256Hex, toUtc } from '../../core/index.js';
import type { DecideResult, RejectCommand, WithdrawCommand } from '../commands.js';
import type { DecisionRow } from '../model.js';
import { alreadyDecided, checkKey } from './deliveries.js';
import { atEpoch, attemptOf, loggableData } from './facts.js';
import { assertAllHeard, heardSender } from './incarnation.js';
import { isAcross } from './kinds.js';
import { closedBy, isOpen, offerRow } from './offers.js';
import { canceled, concluded } from './pending.js';
import { takenBack } from './quarantine.js';
import type { Rule } from './ruling.js';

/*
 * A decision is one row under the acceptance key (tenant, root, authenticated sender, handoff id, attempt), and absorbing.
 *   (none) -> accepted    owner and epoch move, the work item appears, the offer closes: one transaction (acceptance.ts)
 *   (none) -> rejected    stored before it is answered; the ledger's offer under the same bytes closes with it
 *   (none) -> tombstone   a void (offers.ts) or, from another ledger, a withdrawal: answers any bytes that still arrive under the key
 * Whatever arrives later under the key changes nothing (deliveries.ts).
 */

export const reject: Rule<RejectCommand, DecideResult> = (view, command) => {
  checkKey(command);
  const before = alreadyDecided(view, command);
  if (before !== null) return before;
  const { key, ref, digest, code, principal, decidedBy, from } = command;
  const sender = from === undefined ? [] : heardSender(view, command, from);
  if (from !== undefined)
    assertAllHeard(view, from.toAgent, view.kind(ref.tenant, view.case(ref)?.kind ?? from.kind));
  const task = concluded(view, key, command.task, principal);
  const at = toUtc(view.now);
  const epoch = view.case(ref)?.epoch ?? null;
  const decision: DecisionRow = {
    key,
    caseId: ref.caseId,
    verdict: 'rejected',
    code,
    digest,
    answer: command.answer,
    taskId: task.taskId,
    epochBefore: epoch,
    epochAfter: epoch,
    decidedAt: at,
  };
  const offer = view.offer(key);
  const open = offer !== null && isOpen(offer) ? offerRow(offer) : null;
  return {
    changes: [
      ...sender,
      { do: 'add_decision', row: decision },
      ...task.changes,
      ...closedBy(open, { state: 'rejected', code, closedAt: at }),
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
            taskId: task.taskId,
            tokenId: principal.tokenId,
            answer: sha256Hex(command.answer),
            particulars: loggableData(command.data),
            ...(decidedBy === undefined ? {} : { decidedBy }),
          },
        },
      ],
    },
    result: { outcome: 'stored', decision },
  };
};

/** The receiver's side of a withdrawal across ledgers. What the sender's own ledger holds it closes itself, by this answer. */
export const withdraw: Rule<WithdrawCommand, Exclude<DecideResult, { outcome: 'conflict' }>> = (
  view,
  command,
) => {
  checkKey(command);
  const { key, answer, principal, takeover } = command;
  const standing = view.decision(key);
  if (standing !== null) {
    const row = takeover === undefined ? null : takenBack(view, standing, takeover);
    return {
      changes: row === null ? [] : [{ do: 'quarantine', row }],
      audit: null,
      result: { outcome: 'decided', decision: standing },
    };
  }
  const offer = view.offer(key);
  const ref = offer?.ref ?? command.ref;
  if (offer !== null && !isAcross(view, offer)) {
    throw new HoldfastError('usage', 'The offer is of a shared kind: this ledger voids it.');
  }
  const known = view.case(ref);
  assertAllHeard(view, command.toAgent, known === null ? null : view.kind(ref.tenant, known.kind));
  const at = toUtc(view.now);
  const epoch = known?.epoch ?? null;
  const task = canceled(view, key, answer);
  const decision: DecisionRow = {
    key,
    caseId: ref.caseId,
    verdict: 'tombstone',
    code: 'withdrawn',
    digest: null,
    answer,
    taskId: task.taskId,
    epochBefore: epoch,
    epochAfter: epoch,
    decidedAt: at,
  };
  return {
    changes: [
      { do: 'add_decision', row: decision },
      ...task.changes,
      ...closedBy(offer === null ? null : offerRow(offer), {
        state: 'withdrawn',
        code: null,
        closedAt: at,
      }),
    ],
    audit: {
      ref,
      facts: [
        {
          type: 'handoff_withdrawn',
          actor: principal.agent,
          ...attemptOf(key),
          ...(epoch === null ? {} : atEpoch(epoch)),
          rule: 'withdrawn',
          data: {
            tokenId: principal.tokenId,
            answer: sha256Hex(answer),
            ...(task.taskId === null ? {} : { taskId: task.taskId }),
          },
        },
      ],
    },
    result: { outcome: 'stored', decision },
  };
};
