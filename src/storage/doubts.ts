import type { AttentionItem, AuditEntry, CaseRow, OfferRow } from '../ledger/index.js';

/**
 * An offer in doubt as a person is told of it, with the case and its audit: since when it is so, or since when somebody has taken the case
 * over by force all the same.
 */
export function doubtOf(
  { key, ref, toAgent, contract, acceptBy, epoch, intendedAt }: OfferRow,
  row: CaseRow | null,
  audit: readonly AuditEntry[],
): AttentionItem {
  const { sender, handoffId, attempt } = key;
  const isTaken = row !== null && row.epoch > epoch;
  const began = audit.findLast(({ type, handoffId: of, attempt: number, rule, data }) =>
    isTaken
      ? type === 'owner_changed' && rule === 'risk_double_owner' && isOf(data?.doubt, handoffId, attempt)
      : type === 'offer_in_doubt' && of === handoffId && number === attempt,
  );
  return {
    what: isTaken ? 'risk_double_owner' : 'offer_in_doubt',
    ref,
    since: began?.at ?? intendedAt,
    data: { sender, handoffId, attempt, toAgent, contract, acceptBy, epoch },
  };
}

function isOf(doubt: unknown, handoffId: string, attempt: number): boolean {
  const named = doubt as { readonly handoffId?: unknown; readonly attempt?: unknown } | undefined;
  return named?.handoffId === handoffId && named.attempt === attempt;
}
