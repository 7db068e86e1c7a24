import { type AcceptanceKey, type CaseRef, HoldfastError, toUtc } from '../../core/index.js';
import type { Quarantine } from '../model.js';
import type { LedgerView, Rule } from './ruling.js';

/*
 * A case whose ledger is proved older than what was witnessed is closed to every write, refusals included: one more entry would fork
 * its chain. The wrappers below stand between every rule on a case and its command.
 */

export const quarantine: Rule<Omit<Quarantine, 'at'>, void> = (view, command) => ({
  changes: view.quarantined(command.ref)
    ? []
    : [{ do: 'quarantine', row: { ...command, at: toUtc(view.now) } }],
  audit: null,
  result: undefined,
});

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
