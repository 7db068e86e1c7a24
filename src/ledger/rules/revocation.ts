import { HoldfastError, sha256Hex, toUtc } from '../../core/index.js';
import type { RecordRevocationCommand } from '../commands.js';
import type { AuditFact, DecisionRow, OfferRow } from '../model.js';
import { atEpoch, attemptOf } from './facts.js';
import { isAcross } from './kinds.js';
import { isOpen, offerRow } from './offers.js';
import { canceled } from './pending.js';
import { reasonOf } from './resolution.js';
import type { Rule } from './ruling.js';

/**
 * What a revocation means for one offer that carries the evidence. Where this ledger decides it and has not yet, it is rejected here and
 * now, so that no receiver that has the bytes already can accept it. What was accepted stays accepted; that it rests on evidence which was
 * revoked is told. So it is of an offer that another ledger may have accepted.
 */
export const recordRevocation: Rule<RecordRevocationCommand, OfferRow> = (view, command) => {
  const { key, artifactId, version, sha256, answer } = command;
  const offer = view.offer(key);
  if (offer === null) throw new HoldfastError('offer_unknown');
  const { ref, epoch, digest } = offer;
  const reason = reasonOf(command.reason);
  const open = isOpen(offer);
  if (!open && offer.state !== 'accepted') return { changes: [], audit: null, result: offerRow(offer) };
  const told: AuditFact = {
    type: 'evidence_revoked',
    actor: key.sender,
    ...attemptOf(key),
    digest,
    data: { artifactId, version, sha256, reason, offer: offer.state },
  };
  if (!open || isAcross(view, offer)) {
    return { changes: [], audit: { ref, facts: [told] }, result: offerRow(offer) };
  }
  const code = 'evidence_revoked';
  const closedAt = toUtc(view.now);
  const task = canceled(view, key, answer, 'TASK_STATE_REJECTED');
  const decision: DecisionRow = {
    key,
    caseId: ref.caseId,
    verdict: 'rejected',
    code,
    digest,
    answer,
    taskId: task.taskId,
    epochBefore: epoch,
    epochAfter: epoch,
    decidedAt: closedAt,
  };
  const row: OfferRow = { ...offerRow(offer), state: 'rejected', code, closedAt };
  return {
    changes: [
      { do: 'add_decision', row: decision },
      ...task.changes,
      { do: 'set_offer', from: offer.state, row },
    ],
    audit: {
      ref,
      facts: [
        told,
        {
          type: 'offer_closed',
          actor: key.sender,
          ...attemptOf(key),
          ...atEpoch(epoch),
          rule: 'H4',
          digest,
          data: {
            state: 'rejected',
            reason: code,
            answer: sha256Hex(answer),
            ...(task.taskId === null ? {} : { taskId: task.taskId }),
          },
        },
      ],
    },
    result: row,
  };
};
