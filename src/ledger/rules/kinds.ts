import { canonical, HoldfastError } from '../../core/index.js';
import type { CaseRow, KindDefinition, OfferRow } from '../model.js';
import type { LedgerView, Rule } from './ruling.js';

export interface PutKindCommand {
  readonly tenant: string;
  readonly kind: KindDefinition;
  readonly replace: boolean;
}

export const putKind: Rule<PutKindCommand, 'created' | 'same' | 'replaced'> = (view, command) => {
  const { tenant, kind, replace } = command;
  const stored = view.kind(tenant, kind.kind);
  if (stored !== null) {
    if (canonical(stored) === canonical(kind)) return { changes: [], audit: null, result: 'same' };
    // What closes an offer hangs on the mode, so that it cannot change under the offers that are open.
    if (stored.mode !== kind.mode) {
      throw new HoldfastError('kind_conflict', undefined, {
        data: { kind: kind.kind, stored: stored.mode, configured: kind.mode },
      });
    }
    if (!replace) throw new HoldfastError('kind_conflict', undefined, { data: { kind: kind.kind } });
  }
  return {
    changes: [{ do: 'put_kind', tenant, kind }],
    audit: null,
    result: stored === null ? 'created' : 'replaced',
  };
};

/** Whether the owner moves in two ledgers, one after the other. */
export function isSeparate(view: LedgerView, row: CaseRow): boolean {
  return view.kind(row.ref.tenant, row.kind)?.mode === 'separate';
}

/** The same of the case of an offer. */
export function isAcross(view: LedgerView, { ref }: OfferRow): boolean {
  const row = view.case(ref);
  return row !== null && isSeparate(view, row);
}
