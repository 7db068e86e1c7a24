import { canonical, HoldfastError, isHoldfastError } from '../core/index.js';
import { faultPoint } from '../faults/index.js';
import type { EffectRow, LedgerStore, SettleEffectCommand, StartEffectCommand } from '../ledger/index.js';
import { checkArguments } from './arguments.js';
import type { EffectInput, EffectResult } from './model.js';

/** Thrown by an effect's `perform` when it is proved that nothing happened; only then may the key start again. */
export class EffectNotDone extends Error {
  override readonly name = 'EffectNotDone';
}

/**
 * Runs one side effect under the fence: `started` is committed before the outside call, the outcome after it. Any failure that does
 * not prove that nothing happened leaves the effect `unknown`, and its key taken. Safe to call again, by several processes at once
 * too: what was done is not done twice, and what is not known is read back from the target (`reconcile`), never repeated.
 * @throws usage, epoch_stale, not_owner, cap_exceeded, operation_prohibited, operation_not_permitted: nothing was called
 * @throws effect_duplicate where the key names another effect of the case
 * @throws effect_in_flight while an earlier call may still arrive
 * @throws busy where the ledger, or a pause of this process, took longer than the effect's limit: nothing was called
 * @throws outcome_unknown after the call, with the failure as its cause; or where an earlier call cannot be read back
 */
export async function runEffect<T>(
  ledger: LedgerStore,
  writer: string,
  input: EffectInput<T>,
): Promise<EffectResult<T>> {
  checkArguments('effect', input);
  const write = { ref: input.ref, writer, epoch: input.epoch, key: input.key };
  const start = { ...write, operation: input.operation, amount: input.amount ?? null };
  faultPoint('E1.before_start');
  let askedAt = 0;
  const startNow = () => {
    askedAt = performance.now();
    return ledger.startEffect(start);
  };
  const begun = await begin(ledger, start, startNow, input);
  if (begun.state === 'done') return { row: begun, result: null };
  faultPoint('E1.started');
  // From then on others count it as unknown, may find that it did not happen, and start it again: it must not happen any more.
  if (performance.now() - askedAt >= Date.parse(begun.limitAt) - Date.parse(begun.startedAt)) {
    await ledger.settleEffect({ ...write, startedSeq: begun.startedSeq, state: 'failed', outcome: null });
    throw new HoldfastError(
      'busy',
      `Starting ${input.key} took longer than an effect may; nothing was called.`,
    );
  }
  const settle = async (state: SettledState, outcome: string | null): Promise<EffectRow> => {
    try {
      return await ledger.settleEffect({ ...write, startedSeq: begun.startedSeq, state, outcome });
    } catch (cause) {
      // Whatever the ledger says now, the call was made: no code may say that it was not.
      throw new HoldfastError('outcome_unknown', `What became of ${input.key} could not be stored.`, {
        cause,
      });
    }
  };
  let result: T;
  try {
    result = await input.perform(input.key);
  } catch (cause) {
    await settle(cause instanceof EffectNotDone ? 'failed' : 'unknown', null);
    if (cause instanceof EffectNotDone) throw cause;
    throw new HoldfastError('outcome_unknown', `It is not known whether ${input.key} happened.`, { cause });
  }
  faultPoint('E2.called');
  const row = await settle('done', input.outcome?.(result) ?? null);
  faultPoint('E3.settled');
  return { row, result };
}

type SettledState = SettleEffectCommand['state'];

/** The effect as started by this call, or as it was done before. */
async function begin<T>(
  ledger: LedgerStore,
  start: StartEffectCommand,
  startNow: () => Promise<EffectRow>,
  input: EffectInput<T>,
): Promise<EffectRow> {
  try {
    return await startNow();
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== 'effect_duplicate') throw error;
  }
  return (await findOut(ledger, start, input)) ?? (await unlessOvertaken(start.key, startNow()));
}

/** The effect as it was done before; null once it is proved not done, so that its key may start again. */
async function findOut<T>(
  ledger: LedgerStore,
  start: StartEffectCommand,
  input: EffectInput<T>,
): Promise<EffectRow | null> {
  const { ref, writer, epoch, key } = start;
  const earlier = (await ledger.listEffects(ref)).find((row) => row.key === key);
  if (earlier?.state === 'failed') return null;
  if (
    !earlier ||
    earlier.operation !== start.operation ||
    canonical(earlier.amount) !== canonical(start.amount)
  ) {
    throw new HoldfastError('effect_duplicate', `The key ${key} names another effect of the case.`);
  }
  if (earlier.state === 'done') return earlier;
  faultPoint('E4.before_reconcile');
  const found = (await input.reconcile?.(key)) ?? 'unknown';
  faultPoint('E4.after_reconcile');
  // Of exactly the start that was looked up: by now the key may have been started again, by another process.
  const settle = { ref, writer, epoch, key, startedSeq: earlier.startedSeq };
  if (typeof found === 'object') {
    const done = { ...settle, state: 'done', outcome: found.outcome } as const;
    return unlessOvertaken(key, ledger.settleEffect(done));
  }
  if (found !== 'not_done') {
    throw new HoldfastError('outcome_unknown', `It is not known whether ${key} happened.`);
  }
  if (earlier.state === 'started') throw inFlight(key);
  await unlessOvertaken(key, ledger.settleEffect({ ...settle, state: 'failed', outcome: null }));
  return null;
}

/** Another process found out the same and was quicker: it settled that start of the key, or started the key again. */
async function unlessOvertaken<T>(key: string, write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    const overtaken =
      isHoldfastError(error) && (error.code === 'effect_settled' || error.code === 'effect_duplicate');
    throw overtaken ? inFlight(key) : error;
  }
}

function inFlight(key: string): HoldfastError {
  return new HoldfastError('effect_in_flight', `An earlier call for ${key} may still arrive.`);
}
