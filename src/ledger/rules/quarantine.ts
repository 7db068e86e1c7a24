import { type AcceptanceKey, actsFor, type CaseRef, HoldfastError, toUtc } from '../../core/index.js';
import type { CaseRow, DecisionRow, OfferRow, Quarantine, Transfer } from '../model.js';
import type { LedgerView, Rule, Ruling } from './ruling.js';

/*
 * A case whose ledger is proved older than what was witnessed, or contradicted by a receipt, is closed to every write, refusals
 * included: one more entry would fork its chain. The wrappers below stand between every rule on a case and its command; only a
 * recovery (recovery.ts) passes them by.
 */

export const quarantine: Rule<Omit<Quarantine, 'at'>, void> = (view, command) => ({
  changes: view.quarantined(command.ref)
    ? []
    : [{ do: 'quarantine', row: { ...command, at: toUtc(view.now) } }],
  audit: null,
  result: undefined,
});

/**
 * A receipt proves that the owner of this ledger handed the case on in a way that the ledger holds for impossible: it was restored to an
 * older state, or the other side decided twice. Two may own the case now, so nobody here goes on with it.
 */
export function contradicted(
  view: LedgerView,
  transfer: Transfer,
  row: CaseRow | null,
  offer: OfferRow | null,
): Ruling<never> {
  return {
    changes: [{ do: 'quarantine', row: contradiction(view, transfer, row, offer) }],
    audit: null,
    refusal: new HoldfastError('case_quarantined'),
  };
}

/** With the receipt, so that a person who finds it to be right can have the ledger follow it. */
export function contradiction(
  view: LedgerView,
  transfer: Transfer,
  row: CaseRow | null,
  offer: OfferRow | null,
): Quarantine {
  const { ref, key, toAgent, newEpoch, digest, receipt, receiptKey } = transfer;
  const { sender: from, handoffId, attempt } = key;
  return {
    ref,
    reason: 'receipt_contradicted',
    witnessed: { handoffId, attempt, from, toAgent, epoch: newEpoch, digest, receipt, receiptKey },
    found: {
      ...(row === null ? {} : { owner: row.owner, epoch: row.epoch }),
      ...(offer === null ? {} : { attempt: offer.key.attempt, offer: offer.state }),
    },
    at: toUtc(view.now),
  };
}

/**
 * The other side of it: the node of a former owner says that one of its own has owned the case since this ledger's acceptance of it, and
 * the ledger knows of no way back. They took it over by force while their offer was in doubt. `null` where nothing is contradicted.
 */
export function takenBack(
  view: LedgerView,
  { key, caseId, verdict, epochAfter }: DecisionRow,
  takeover: Transfer,
): Quarantine | null {
  const ref = { tenant: key.tenant, root: key.root, caseId };
  const row = view.case(ref);
  const isTheirs = actsFor(takeover.key.sender) === key.sender && actsFor(takeover.toAgent) === key.sender;
  if (verdict !== 'accepted' || epochAfter === null || row === null || !isTheirs) return null;
  const isSince = takeover.oldEpoch >= epochAfter && takeover.newEpoch >= row.epoch;
  if (!isSince || actsFor(row.owner) === key.sender || view.quarantined(ref)) return null;
  return contradiction(view, takeover, row, null);
}

/** @throws case_quarantined, with nothing written */
export function onCase<C extends { readonly ref: CaseRef }, T>(rule: Rule<C, T>): Rule<C, T> {
  return (view, command) => {
    assertWritable(view, command.ref);
    return rule(view, command);
  };
}

/** The same for a command that names an attempt: what stands under its key says of which case it is. */
export function onAttempt<C, T>(rule: Rule<C, T>, keyOf: (command: C) => AcceptanceKey): Rule<C, T> {
  return (view, command) => {
    const key = keyOf(command);
    const offer = view.offer(key);
    if (offer !== null) assertWritable(view, offer.ref);
    const decision = view.decision(key);
    if (decision !== null) {
      assertWritable(view, { tenant: key.tenant, root: key.root, caseId: decision.caseId });
    }
    return rule(view, command);
  };
}

function assertWritable(view: LedgerView, ref: CaseRef): void {
  if (view.quarantined(ref)) throw new HoldfastError('case_quarantined');
}
