import { addAmounts, compareAmounts, type Money } from '../../core/index.js';
import type { CaseRow, Constraints, EffectRow, KindDefinition } from '../model.js';
import type { StartEffectCommand } from '../port.js';

export interface PolicyRefusal {
  readonly code: 'operation_prohibited' | 'operation_not_permitted' | 'cap_exceeded';
  readonly data: Readonly<Record<string, string | null>>;
}

/**
 * Node-held policy at the moment of the effect: the kind's word always counts, what was agreed on the case narrows it.
 * `effects` are those of the case as of now; `failed` ones did not happen and count for nothing.
 */
export function checkPolicy(
  kind: KindDefinition,
  row: CaseRow,
  effects: readonly EffectRow[],
  command: StartEffectCommand,
): PolicyRefusal | null {
  const { operation, amount, writer } = command;
  if ([...kind.policy.prohibitions, ...row.constraints.prohibitions].includes(operation)) {
    return { code: 'operation_prohibited', data: { operation } };
  }
  if (!isPermitted(kind, row.constraints, writer, operation)) {
    return { code: 'operation_not_permitted', data: { operation } };
  }
  const spent = effects.filter((effect) => effect.operation === operation && effect.state !== 'failed');
  for (const cap of [own(kind.policy.caps, operation), own(row.constraints.caps, operation)]) {
    const reason = cap === undefined ? null : exceeds(cap, spent, amount);
    if (cap !== undefined && reason !== null) {
      return {
        code: 'cap_exceeded',
        data: {
          operation,
          reason,
          cap: cap.amount,
          currency: cap.currency,
          asked: amount === null ? null : amount.amount,
        },
      };
    }
  }
  return null;
}

/** An agent listed by URL needs no contract; under `*` a contract must name the operation. A contract always narrows. */
function isPermitted(
  kind: KindDefinition,
  constraints: Constraints,
  writer: string,
  operation: string,
): boolean {
  const byContract = constraints.operations;
  if (byContract !== null && !byContract.includes(operation)) return false;
  const { operations } = kind.policy;
  if (own(operations, writer)?.includes(operation)) return true;
  return byContract !== null && (own(operations, '*')?.includes(operation) ?? false);
}

/** Under a cap every amount must be known and in its currency: what cannot be added up cannot be bounded. */
function exceeds(cap: Money, spent: readonly EffectRow[], asked: Money | null): string | null {
  if (asked === null) return 'amount_missing';
  if (asked.currency !== cap.currency) return 'currency_differs';
  const amounts = spent.map((effect) => effect.amount);
  if (amounts.some((amount) => amount === null || amount.currency !== cap.currency)) return 'sum_unknown';
  const sum = addAmounts([asked.amount, ...amounts.map((amount) => amount?.amount ?? '0')]);
  return compareAmounts(sum, cap.amount) > 0 ? 'sum' : null;
}

/**
 * What bounds the next owner: caps and prohibitions of a case only ever get tighter along its chain; the operations are
 * those of the contract under which this owner accepted. A cap in another currency does not replace the one that stands.
 */
export function narrow(standing: Constraints, agreed: Constraints): Constraints {
  const caps: Record<string, Money> = { ...agreed.caps };
  for (const [operation, cap] of Object.entries(standing.caps)) {
    const other = own(agreed.caps, operation);
    const tighter =
      other !== undefined && other.currency === cap.currency && compareAmounts(other.amount, cap.amount) < 0;
    caps[operation] = tighter ? other : cap;
  }
  const prohibitions = [...new Set([...standing.prohibitions, ...agreed.prohibitions])];
  return { caps, prohibitions, operations: agreed.operations };
}

/** Operations and agents are names from outside: `constructor` is no key of ours. */
function own<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
