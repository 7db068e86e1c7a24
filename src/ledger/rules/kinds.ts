import { canonical, HoldfastError } from '../../core/index.js';
import type { KindDefinition } from '../model.js';
import type { Rule } from './ruling.js';

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
    if (!replace) throw new HoldfastError('kind_conflict', undefined, { data: { kind: kind.kind } });
  }
  return {
    changes: [{ do: 'put_kind', tenant, kind }],
    audit: null,
    result: stored === null ? 'created' : 'replaced',
  };
};
