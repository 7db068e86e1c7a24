import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CaseRef, pause } from '../../src/core/index.js';
import { type EffectInput, EffectNotDone, runEffect } from '../../src/handoff/index.js';
import { createWorld, TRIAGE, type World } from './world.js';

const LIMIT_MS = 30_000;

let world: World;
let ref: CaseRef;
let calls: string[];
beforeEach(async () => {
  world = await createWorld();
  ref = await world.openCase('CASE-1');
  calls = [];
  const kind = await world.ledger.getKind('default', 'refund-dispute');
  if (!kind) throw new Error('no kind');
  const operations = { [TRIAGE]: ['refund', 'publish'] };
  const limits = { ...kind.limits, effectLimitMs: LIMIT_MS };
  await world.ledger.putKind(
    'default',
    { ...kind, limits, policy: { ...kind.policy, operations } },
    { replace: true },
  );
});
afterEach(() => world.close());

const refund = (amount = '49.00', key = 'refund-1') => ({
  ref,
  epoch: 1,
  key,
  operation: 'refund',
  amount: { amount, currency: 'EUR' },
  perform: async (idempotencyKey: string) => {
    calls.push(idempotencyKey);
    return { id: `re_${calls.length}` };
  },
  outcome: (result: { id: string }) => result.id,
});
const run = <T>(input: EffectInput<T>) => runEffect(world.ledger, TRIAGE, input);
const lost = async (): Promise<{ id: string }> => {
  calls.push('lost');
  throw new Error('connection reset');
};
const gate = () => {
  let resolve: (value: null) => void = () => undefined;
  const promise = new Promise<null>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
};

describe('an effect', () => {
  it('[R-080] is not done once its limit has passed before it was, as in a process that slept', async () => {
    const kind = await world.ledger.getKind('default', 'refund-dispute');
    if (!kind) throw new Error('no kind');
    const limits = { ...kind.limits, effectLimitMs: 200 };
    await world.ledger.putKind('default', { ...kind, limits }, { replace: true });
    const slept = {
      ...world.ledger,
      startEffect: async (...args: Parameters<typeof world.ledger.startEffect>) => {
        const row = await world.ledger.startEffect(...args);
        await pause(200);
        return row;
      },
    };
    await expect(runEffect(slept, TRIAGE, refund())).rejects.toMatchObject({ code: 'busy' });
    expect(calls).toEqual([]);
    expect(await world.ledger.listEffects(ref)).toMatchObject([{ key: 'refund-1', state: 'failed' }]);
    expect(await run(refund())).toMatchObject({ row: { state: 'done' } });
  });

  it('[R-080] is done once, however often it is asked for', async () => {
    expect(await run(refund())).toMatchObject({
      row: { state: 'done', outcome: 're_1' },
      result: { id: 're_1' },
    });
    expect(await run(refund())).toMatchObject({ row: { state: 'done', outcome: 're_1' }, result: null });
    await expect(run(refund('1.00'))).rejects.toMatchObject({ code: 'effect_duplicate' });
    expect(calls).toEqual(['refund-1']);
  });

  it('is unknown after a lost answer, and is read back, never repeated', async () => {
    await expect(run({ ...refund(), perform: lost })).rejects.toMatchObject({ code: 'outcome_unknown' });
    await expect(run(refund())).rejects.toMatchObject({ code: 'outcome_unknown' });
    const found = await run({ ...refund(), reconcile: async () => ({ outcome: 're_9' }) });
    expect(found).toMatchObject({ row: { state: 'done', outcome: 're_9' }, result: null });
    expect(calls).toEqual(['lost']);
  });

  it('starts again only when it is proved not to have happened', async () => {
    await expect(run({ ...refund(), perform: lost })).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(await run({ ...refund(), reconcile: async () => 'not_done' })).toMatchObject({
      row: { state: 'done' },
    });
    const refused = {
      ...refund('1.00', 'refund-2'),
      perform: () => Promise.reject(new EffectNotDone('declined')),
    };
    await expect(run(refused)).rejects.toThrow('declined');
    expect(await run(refund('1.00', 'refund-2'))).toMatchObject({ row: { state: 'done' } });
  });

  it('may still arrive until its limit has passed, so that "not done" is not believed before', async () => {
    await world.ledger.startEffect({
      ref,
      writer: TRIAGE,
      epoch: 1,
      key: 'refund-1',
      operation: 'refund',
      amount: refund().amount,
    });
    const again = () => run({ ...refund(), reconcile: async () => 'not_done' });
    await expect(again()).rejects.toMatchObject({ code: 'effect_in_flight' });
    world.advance(LIMIT_MS);
    expect(await again()).toMatchObject({ row: { state: 'done' } });
    expect(calls).toEqual(['refund-1']);
  });

  it('[R-080][R-166] is called once where two processes find out at the same moment that it did not happen', async () => {
    await expect(run({ ...refund(), perform: lost })).rejects.toMatchObject({ code: 'outcome_unknown' });
    calls = [];
    const second = gate();
    const called = gate();
    const answered = gate();
    let asked = 0;
    const reconcile = async () => {
      asked += 1;
      if (asked === 2) second.resolve(null);
      await (asked === 2 ? called : second).promise;
      return 'not_done' as const;
    };
    const perform = async (key: string) => {
      calls.push(key);
      called.resolve(null);
      await answered.promise;
      return { id: 're_1' };
    };
    const both = [run({ ...refund(), reconcile, perform }), run({ ...refund(), reconcile, perform })];
    const other = await Promise.race(both.map((one) => one.then(() => null).catch((error) => error)));
    expect(other).toMatchObject({ code: 'effect_in_flight' });
    answered.resolve(null);
    const results = await Promise.allSettled(both);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(calls).toEqual(['refund-1']);
  });

  it('leaves a later call of its key alone when its own answer comes after the limit', async () => {
    const answers: Record<string, string | EffectNotDone> = {
      late: new EffectNotDone('declined'),
      lost: 'connection reset',
    };
    for (const [key, answer] of Object.entries(answers)) {
      let fail: (error: unknown) => void = () => undefined;
      const called = gate();
      const slow = run({
        ...refund('1.00', key),
        perform: () =>
          new Promise<never>((_, reject) => {
            fail = reject;
            called.resolve(null);
          }),
      }).catch((error) => error);
      await called.promise;
      world.advance(LIMIT_MS);
      const again = run({
        ...refund('1.00', key),
        reconcile: async () => 'not_done',
        perform: async () => {
          fail(answer);
          expect(await slow).toMatchObject({ code: 'outcome_unknown' });
          const [row] = (await world.ledger.listEffects(ref)).filter((effect) => effect.key === key);
          expect(row?.state).not.toBe('failed');
          return { id: 're_2' };
        },
      });
      expect(await again).toMatchObject({ row: { state: 'done', outcome: 're_2' } });
    }
  });

  it('[R-075] never says that nothing was called once it was, though the case has moved on meanwhile', async () => {
    const slow = {
      ...refund(),
      perform: async (key: string) => {
        calls.push(key);
        world.advance(LIMIT_MS);
        expect(await world.sender.handOff(world.input(ref))).toMatchObject({ state: 'accepted' });
        return { id: 're_1' };
      },
    };
    await expect(run(slow)).rejects.toMatchObject({
      code: 'outcome_unknown',
      cause: { code: 'epoch_stale' },
    });
    expect(calls).toEqual(['refund-1']);
    expect(await world.ledger.listEffects(ref)).toMatchObject([{ state: 'unknown' }]);
    expect((await world.ledger.readAudit(ref)).at(-1)).toMatchObject({ type: 'effect_reported' });
  });

  it('[R-127][R-128] is refused before anything is called: over the cap, in sum, prohibited or not permitted', async () => {
    await run(refund('60.00'));
    await expect(run(refund('60.00', 'refund-2'))).rejects.toMatchObject({ code: 'cap_exceeded' });
    await expect(run(refund('100.01', 'refund-3'))).rejects.toMatchObject({ code: 'cap_exceeded' });
    await expect(run({ ...refund('1.00', 'publish-1'), operation: 'publish' })).rejects.toMatchObject({
      code: 'operation_prohibited',
    });
    await expect(run({ ...refund('1.00', 'pay-1'), operation: 'payout' })).rejects.toMatchObject({
      code: 'operation_not_permitted',
    });
    expect(calls).toEqual(['refund-1']);
  });
});
