import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { refundDispute } from '../../src/contract/index.js';
import { HoldfastError, type Logger, silentLogger } from '../../src/core/index.js';
import { createEnvelopeRegistry, envelopeV2 } from '../../src/envelope/index.js';
import { createLease, createWorker, type HandoffHandler, type Lease } from '../../src/handoff/index.js';
import { BILLING, createWorld, type World } from './world.js';

let world: World;
const leases: Lease[] = [];
const endLeases = () => Promise.all(leases.splice(0).map((lease) => lease.end()));
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await endLeases();
  await world.close();
});

type Work = NonNullable<HandoffHandler['work']>;

/** A worker of billing's whose handler is this. */
function workerOf(work: Work, logger: Logger = silentLogger, retryDelaysMs: readonly number[] = []) {
  const { ledger } = world;
  const lease = createLease({ ledger, agent: BILLING, logger, leaseMs: 15_000, beatMs: 5_000 });
  leases.push(lease);
  return createWorker({
    self: BILLING,
    ledger,
    lease,
    retryDelaysMs,
    works: () => true,
    ready: async () => undefined,
    envelopes: createEnvelopeRegistry([envelopeV2]),
    store: world.evidence.billing,
    logger,
    received: () => ({ contract: refundDispute, handler: { work } }),
  });
}

describe('accepted work', () => {
  it('[R-077] of one item that fails at once stops no other item from starting', async () => {
    for (const caseId of ['CASE-1', 'CASE-2', 'CASE-3']) {
      await world.sender.handOff(world.input(await world.openCase(caseId)));
    }
    const failures: Record<string, () => unknown> = {
      'throws before it is a promise': () => {
        throw new Error('a bug');
      },
      'throws an error that looks like a verdict': () => {
        throw new HoldfastError('not_owner');
      },
      'returns no promise': () => undefined,
    };
    for (const [name, fail] of Object.entries(failures)) {
      const started: string[] = [];
      const worker = workerOf((work) => {
        started.push(work.ref.caseId);
        return (work.ref.caseId === 'CASE-1' ? fail() : Promise.resolve()) as Promise<void>;
      });
      expect(await worker.resume('default'), name).toBe(3);
      await worker.stop();
      expect(started, name).toEqual(['CASE-1', 'CASE-2', 'CASE-3']);
      await endLeases();
    }
  });

  it('[R-077] whose envelope this version cannot read waits, and holds up nothing', async () => {
    await world.sender.handOff(world.input(await world.openCase('CASE-1')));
    const [item] = world.accepted;
    if (!item) throw new Error('nothing was accepted');
    const started: string[] = [];
    const worker = workerOf(async (work) => void started.push(work.item.id));
    worker.start({ ...item, id: 'work_future', envelope: '{"version":3}' });
    worker.start({ ...item, id: 'work_torn', envelope: '{' });
    worker.start(item);
    await expect.poll(() => started).toEqual([item.id]);
    await worker.stop();
    expect(await world.ledger.listWork('default', { state: 'open' })).toHaveLength(1);
  });

  it('[R-084] is run by one living process at a time, and taken over from one that ended', async () => {
    await world.sender.handOff(world.input(await world.openCase('CASE-1')));
    const [item] = world.accepted;
    if (!item) throw new Error('nothing was accepted');
    const runs: string[] = [];
    const runIn = (name: string) => workerOf(async () => void runs.push(name));
    const [one, two] = [runIn('one'), runIn('two')];
    one.start(item);
    await expect.poll(() => runs).toEqual(['one']);
    two.start(item);
    expect(await two.resume('default')).toBe(0);
    // The handler returned without settling the item: it stays with its process, which does not run it again either.
    expect(await one.resume('default')).toBe(0);
    await leases[0]?.end();
    expect(await two.resume('default')).toBe(1);
    await two.stop();
    expect(runs).toEqual(['one', 'two']);
  });

  it('that throws is run again a bounded number of times, then parked, while others progress', async () => {
    for (const caseId of ['CASE-1', 'CASE-2']) {
      await world.sender.handOff(world.input(await world.openCase(caseId)));
    }
    const runs: string[] = [];
    const said: unknown[] = [];
    const logger = {
      ...silentLogger,
      error: (fields: Record<string, unknown>, message: string) =>
        void said.push([fields.case, fields.tries, message.split(';')[0]]),
    };
    const poison: Work = async (work) => {
      runs.push(work.ref.caseId);
      if (work.ref.caseId === 'CASE-1') throw new Error('poison');
      await work.done({ decision: 'refunded' });
    };
    const worker = workerOf(poison, logger, [1, 1]);
    await worker.resume('default');
    await expect.poll(() => said).toHaveLength(3);
    expect(said).toEqual([
      ['CASE-1', 1, 'work stopped'],
      ['CASE-1', 2, 'work stopped'],
      ['CASE-1', 3, 'work parked'],
    ]);
    expect(runs.filter((caseId) => caseId === 'CASE-2')).toHaveLength(1);
    expect(await worker.resume('default')).toBe(0);
    const open = await world.ledger.listWork('default', { state: 'open' });
    expect(open.map(({ ref }) => ref.caseId)).toEqual(['CASE-1']);
    // Nobody else runs into it while this process lives; the next start tries it again.
    const other = workerOf(async (work) => void (await work.done({ decision: 'refunded' })));
    expect(await other.resume('default')).toBe(0);
    await leases[0]?.end();
    expect(await other.resume('default')).toBe(1);
    await other.stop();
    expect(await world.ledger.listWork('default', { state: 'open' })).toEqual([]);
  });

  it('that is claimed anew while its handler still runs is run again where that fails', async () => {
    await world.sender.handOff(world.input(await world.openCase('CASE-1')));
    let runs = 0;
    let fail = (_: Error): void => undefined;
    const worker = workerOf(
      async (work) => {
        runs += 1;
        if (runs > 1) return void (await work.done({ decision: 'refunded' }));
        await new Promise((_, reject) => {
          fail = reject;
        });
      },
      silentLogger,
      [1, 1],
    );
    await worker.resume('default');
    await expect.poll(() => runs).toBe(1);
    const [lease] = leases;
    if (!lease) throw new Error('no lease');
    // As if it had run out.
    await world.ledger.release(lease.holder);
    expect(await worker.resume('default')).toBe(1);
    fail(new Error('the call timed out'));
    await expect.poll(() => world.ledger.listWork('default', { state: 'done' })).toHaveLength(1);
    await worker.stop();
  });

  it('that was settled, or went on to another owner, between two runs is not run again', async () => {
    await world.sender.handOff(world.input(await world.openCase('CASE-1')));
    let runs = 0;
    const worker = workerOf(
      async (work) => {
        runs += 1;
        await work.done({ decision: 'refunded' });
        throw new Error('after all was done');
      },
      silentLogger,
      [1, 1],
    );
    await worker.resume('default');
    await expect.poll(() => world.ledger.listWork('default', { state: 'done' })).toHaveLength(1);
    await worker.stop();
    expect(runs).toBe(1);
  });

  it('that stops says where, and takes only what it can store', async () => {
    await world.sender.handOff(world.input(await world.openCase('CASE-1')));
    const errors: unknown[] = [];
    const refused: unknown[] = [];
    const logger = { ...silentLogger, error: ({ err }: { err?: unknown }) => void errors.push(err) };
    const bug = new TypeError('a bug');
    const worker = workerOf(async ({ note, effect, done }) => {
      const effects = { key: 'k', operation: 'refund', amount: { amount: '1.00', currency: 'EUR' } };
      for (const call of [() => note({} as never), () => effect(effects as never), () => done()]) {
        await call().catch(({ code, fields }) => refused.push([code, fields[0]?.path]));
      }
      throw bug;
    }, logger);
    await worker.resume('default');
    await worker.stop();
    expect(errors).toEqual([bug]);
    expect(refused).toEqual([
      ['usage', 'text'],
      ['usage', 'perform'],
      ['output_invalid', 'result'],
    ]);
    const ref = { tenant: 'default', root: world.identities.triage.url, caseId: 'CASE-1' };
    expect(await world.ledger.listEffects(ref)).toEqual([]);
  });
});
