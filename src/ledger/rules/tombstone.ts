import type { DecisionRow, OfferRow } from '../model.js';

/** The decision that a void inserts: it answers any bytes that still arrive under the key. */
export function tombstoneOf(
  { key, ref, epoch }: OfferRow,
  answer: string,
  taskId: string | null,
  at: string,
): DecisionRow {
  return {
    key,
    caseId: ref.caseId,
    verdict: 'tombstone',
    code: 'withdrawn',
    digest: null,
    answer,
    taskId,
    epochBefore: epoch,
    epochAfter: epoch,
    decidedAt: at,
  };
}
