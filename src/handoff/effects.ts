import { canonical, HoldfastError, isHoldfastError } from '../core/index.js';
import type { EffectRow, LedgerStore, StartEffectCommand } from '../ledger/index.js';
import type { EffectInput, EffectResult } from './model.js';

/** Thrown by an effect's `perform` when it is proved that nothing happened; only then may the key start again. */
export class EffectNotDone extends Error {
  override readonly name = 'EffectNotDone';
}

/**
 * Runs one side effect under the fence: `started` is committed before the outside call, the outcome after it. Any failure that does
 * not prove that nothing happened leaves the effect `unknown`, and its key taken. Safe to call again: what was done is not done twice,
 * and what is not known is read back from the target (`reconcile`), never repeated.
 * @throws epoch_stale, not_owner, cap_exceeded, operation_prohibited, operation_not_permitted: nothing was called
 * @throws effect_duplicate where the key names another effect of the case
 * @throws effect_in_flight while an earlier call may still arrive
 * @throws outcome_unknown after the call, with the failure as its cause; or where an earlier call cannot be read back
 */
export async function runEffect<T>(
  ledger: LedgerStore,
  writer: string,
  input: EffectInput<T>,
): Promise<EffectResult<T>> {
  const write = { ref: input.ref, writer, epoch: input.epoch, key: input.key };
  const start = { ...write, operation: input.operation, amount: input.amount ?? null };
  try {
    await ledger.startEffect(start);
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== 'effect_duplicate') throw error;
    const done = await findOut(ledger, start, input);
    if (done) return { row: done, result: null };
    await ledger.startEffect(start);
  }
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

/** The effect as it was done before; null once it is proved not done, so that its key may start again. */
async function findOut<T>(
  ledger: LedgerStore,
  start: StartEffectCommand,
  input: EffectInput<T>,
): Promise<EffectRow | null> {
  const earlier = (await ledger.listEffects(start.ref)).find((row) => row.key === start.key);
  if (
    !earlier ||
    earlier.operation !== start.operation ||
    canonical(earlier.amount) !== canonical(start.amount)
  ) {
    throw new HoldfastError('effect_duplicate', `The key ${start.key} names another effect of the case.`);
  }
  if (earlier.state === 'done') return earlier;
  const found = (await input.reconcile?.(start.key)) ?? 'unknown';
  const write = { ref: start.ref, writer: start.writer, epoch: start.epoch, key: start.key };
  if (typeof found === 'object')
    return ledger.settleEffect({ ...write, state: 'done', outcome: found.outcome });
  if (found === 'unknown') {
    throw new HoldfastError('outcome_unknown', `It is not known whether ${start.key} happened.`);
  }
  if (earlier.state === 'started') {
    throw new HoldfastError('effect_in_flight', `An earlier call for ${start.key} may still arrive.`);
  }
  await ledger.settleEffect({ ...write, state: 'failed', outcome: null });
  return null;
}
