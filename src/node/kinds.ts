import { HoldfastError, isHoldfastError } from '../core/index.js';
import type { KindDefinition, LedgerStore } from '../ledger/index.js';

/**
 * Stores kinds in the ledger, where they bind every agent that uses it.
 * @throws kind_conflict naming the kind, where the ledger holds another definition and `replace` is not set
 */
export async function putKinds(
  ledger: LedgerStore,
  tenant: string,
  kinds: readonly KindDefinition[],
  options: { replace?: boolean } = {},
): Promise<Record<string, 'created' | 'same' | 'replaced'>> {
  const outcome: Record<string, 'created' | 'same' | 'replaced'> = {};
  for (const kind of kinds) {
    try {
      outcome[kind.kind] = await ledger.putKind(tenant, kind, options);
    } catch (cause) {
      if (!isHoldfastError(cause) || cause.code !== 'kind_conflict') throw cause;
      throw new HoldfastError('kind_conflict', sentence(kind, cause.data.stored), {
        data: { ...cause.data, kind: kind.kind },
        cause,
      });
    }
  }
  return outcome;
}

/** Of another mode no replacing helps: it says what does. */
function sentence({ kind, mode }: KindDefinition, stored: unknown): string {
  if (typeof stored === 'string') {
    return (
      `The kind ${kind} is of the mode ${stored} in this ledger, and of the mode ${mode} in this configuration; a kind keeps its mode. ` +
      'Give the other mode to a kind of another name, or to an agent with a new ledger.'
    );
  }
  return (
    `The ledger holds another definition of the kind ${kind} than this configuration. Compare \`holdfast kind list\` with ` +
    `kinds.${kind}; \`holdfast kind apply --replace\` makes this one count for every agent on the ledger.`
  );
}
