import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { refundDispute } from '../../src/contract/index.js';
import { HoldfastError, type Logger, silentLogger } from '../../src/core/index.js';
import { createEnvelopeRegistry, envelopeV2 } from '../../src/envelope/index.js';
import { createWorker, type HandoffHandler } from '../../src/handoff/index.js';
import { BILLING, createWorld, type World } from './world.js';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

type Work = NonNullable<HandoffHandler['work']>;

/** A worker of billing's whose handler is this. */
function workerOf(work: Work, logger: Logger = silentLogger) {
  return createWorker({
    self: BILLING,
    ledger: world.ledger,
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
      expect(await worker.resume(['default']), name).toBe(3);
      await worker.drain();
      expect(started, name).toEqual(['CASE-1', 'CASE-2', 'CASE-3']);
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
    await worker.drain();
    expect(started).toEqual([item.id]);
    expect(await world.ledger.listWork('default', { state: 'open' })).toHaveLength(1);
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
    await worker.resume(['default']);
    await worker.drain();
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
