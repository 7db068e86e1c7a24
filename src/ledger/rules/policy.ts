import { addAmounts, compareAmounts, formatMoney, type Money } from '../../core/index.js';
import type { StartEffectCommand } from '../commands.js';
import type { CaseRow, Constraints, EffectRow, KindDefinition } from '../model.js';

export interface PolicyRefusal {
  readonly code: 'operation_prohibited' | 'operation_not_permitted' | 'cap_exceeded';
  readonly message: string;
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
    return {
      code: 'operation_prohibited',
      message: `The operation ${operation} is prohibited for this case.`,
      data: { operation },
    };
  }
  if (!isPermitted(kind, row.constraints, writer, operation)) {
    return {
      code: 'operation_not_permitted',
      message: `The operation ${operation} is not among those this agent may do here.`,
      data: { operation },
    };
  }
  const spent = effects.filter((effect) => effect.operation === operation && effect.state !== 'failed');
  for (const cap of [own(kind.policy.caps, operation), own(row.constraints.caps, operation)]) {
    const refusal = cap === undefined ? null : judgeCap(operation, cap, spent, amount);
    if (refusal !== null) return refusal;
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
function judgeCap(
  operation: string,
  cap: Money,
  spent: readonly EffectRow[],
  asked: Money | null,
): PolicyRefusal | null {
  const used = sumIn(cap.currency, spent);
  const limit = `the cap of ${formatMoney(cap)} on ${operation}`;
  const refuse = (reason: string, message: string): PolicyRefusal => ({
    code: 'cap_exceeded',
    message,
    data: { operation, reason, cap: cap.amount, currency: cap.currency, used, asked: asked?.amount ?? null },
  });
  if (asked === null) return refuse('amount_missing', `Under ${limit} an amount must be given.`);
  if (asked.currency !== cap.currency) {
    return refuse('currency_differs', `${formatMoney(asked)} is not in the currency of ${limit}.`);
  }
  if (used === null) {
    return refuse(
      'sum_unknown',
      `What counts towards ${limit} is not known: an effect has no amount in ${cap.currency}.`,
    );
  }
  if (compareAmounts(addAmounts([used, asked.amount]), cap.amount) <= 0) return null;
  return refuse('sum', `${formatMoney(asked)} would pass ${limit}, of which ${used} is used.`);
}

function sumIn(currency: string, spent: readonly EffectRow[]): string | null {
  const amounts = spent.map(({ amount }) => (amount?.currency === currency ? amount.amount : null));
  const known = amounts.filter((amount) => amount !== null);
  return known.length === amounts.length ? addAmounts(known) : null;
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
