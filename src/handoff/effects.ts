import { HoldfastError } from '../core/index.js';
import type { EffectRow, LedgerStore } from '../ledger/index.js';
import type { EffectInput } from './model.js';

/** Thrown by an effect's `perform` when it is proved that nothing happened; only then may the key start again. */
export class EffectNotDone extends Error {
  override readonly name = 'EffectNotDone';
}

/**
 * Runs one side effect under the fence: `started` is committed before the outside call, the outcome after it. Any failure that does
 * not prove that nothing happened leaves the effect `unknown`, and its key taken.
 * @throws epoch_stale, not_owner, cap_exceeded, operation_prohibited, operation_not_permitted, effect_duplicate: nothing was called
 * @throws outcome_unknown after the call, with the failure as its cause
 */
export async function runEffect<T>(
  ledger: LedgerStore,
  writer: string,
  input: EffectInput<T>,
): Promise<{ row: EffectRow; result: T }> {
  const write = { ref: input.ref, writer, epoch: input.epoch, key: input.key };
  await ledger.startEffect({ ...write, operation: input.operation, amount: input.amount ?? null });
  let result: T;
  try {
    result = await input.perform(input.key);
  } catch (cause) {
    if (cause instanceof EffectNotDone) {
      await ledger.settleEffect({ ...write, state: 'failed', outcome: null });
      throw cause;
    }
    await ledger.settleEffect({ ...write, state: 'unknown', outcome: null });
    throw new HoldfastError('outcome_unknown', `It is not known whether ${input.key} happened.`, { cause });
  }
  const row = await ledger.settleEffect({
    ...write,
    state: 'done',
    outcome: input.outcome?.(result) ?? null,
  });
  return { row, result };
}
