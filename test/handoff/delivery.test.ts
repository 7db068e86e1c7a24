import { describe, expect, it } from 'vitest';
import { HoldfastError, pause, silentLogger } from '../../src/core/index.js';
import { createDelivery, createLease, type PeerClient } from '../../src/handoff/index.js';
import type { LedgerStore, OfferRow } from '../../src/ledger/index.js';
import { createMemoryLedger } from '../../src/storage/index.js';
import {
  BILLING,
  KIND,
  LEGAL,
  offered,
  openCase,
  ref,
  TestClock,
  TRIAGE,
} from '../storage/suite/fixtures.js';

type Send = PeerClient['send'];

/** Triage's deliveries over a wire that is this function; offers are to billing, or to legal where it is named. */
async function deliveries(send: (close: () => Promise<void>, to: string) => Promise<never>) {
  const clock = new TestClock();
  const ledger = createMemoryLedger({ clock });
  await ledger.putKind('acme', KIND);
  const lease = createLease({ ledger, agent: TRIAGE, logger: silentLogger, leaseMs: 15_000, beatMs: 5_000 });
  const sent: string[] = [];
  const wire: Send = async (to, message) => {
    const [offer] = await ledger.listOffers('acme', { caseId: message });
    if (offer === undefined) throw new Error('no offer');
    sent.push(offer.ref.caseId);
    const { key } = offer;
    const close = async () =>
      void (await ledger.voidOffer({ key, writer: TRIAGE, reason: 'x', expired: false, answer: '{}' }));
    return send(close, to);
  };
  const delivery = createDelivery({
    self: TRIAGE,
    ledger,
    lease,
    peers: { find: () => null, list: () => [] },
    keys: { keysOf: async () => [] },
    client: {
      card: async () => ({}),
      getTask: () => Promise.reject(new HoldfastError('not_found')),
      send: wire,
      control: () => Promise.reject(new HoldfastError('peer_unreachable')),
    },
    clock,
    logger: silentLogger,
    retryDelaysMs: [],
    backoffMs: [1, 2],
    waitMs: 50,
  });
  return {
    clock,
    ledger,
    lease,
    delivery,
    sent,
    async offer(caseId: string, toAgent = BILLING, holder = ''): Promise<OfferRow> {
      await openCase(ledger, caseId);
      return offered(ledger, clock, { ref: ref(caseId), toAgent, message: caseId, holder });
    },
  };
}

const lost = async (close: () => Promise<void>): Promise<never> => {
  await close();
  throw new HoldfastError('outcome_unknown');
};
const unreachable = async (): Promise<never> => {
  throw new HoldfastError('peer_unreachable');
};

describe('deliveries in the background', () => {
  it('to a peer that never answers hold up none to another', async () => {
    const never = new Promise<never>(() => {});
    const world = await deliveries((close, to) => (to === LEGAL ? never : lost(close)));
    for (let n = 0; n < 20; n += 1) await world.offer(`DEAD-${n}`, LEGAL);
    await world.offer('CASE-1');
    const stop = new AbortController();
    for (const offer of await world.lease.claimOffers('acme', 100)) {
      void world.delivery.pursue(offer, stop.signal);
    }
    const open = async () => (await world.ledger.listOffers('acme', { open: true, to: BILLING })).length;
    await expect.poll(open).toBe(0);
    // And only so many wait for the dead one at the same time.
    expect(world.sent.filter((caseId) => caseId.startsWith('DEAD'))).toHaveLength(4);
    stop.abort();
    await world.lease.end();
  });

  it('of an offer that nobody answers go on until its time is over, and then close it', async () => {
    const world = await deliveries(unreachable);
    const offer = await world.offer('CASE-1');
    const [claimed] = await world.lease.claimOffers('acme', 1);
    const pursuit = world.delivery.pursue(claimed ?? offer, new AbortController().signal);
    await expect.poll(() => world.sent.length).toBeGreaterThan(5);
    expect(await world.ledger.getOffer(offer.key)).toMatchObject({ state: 'offered' });
    world.clock.advance(61_000);
    await pursuit;
    expect(await world.ledger.getOffer(offer.key)).toMatchObject({ state: 'expired' });
    await world.lease.end();
  });

  it('end with a quarantine, without holding the offer', async () => {
    const world = await deliveries(unreachable);
    const offer = await world.offer('CASE-1');
    await world.lease.claimOffers('acme', 1);
    await world.ledger.quarantine({ ref: offer.ref, reason: 'audit_forked', witnessed: {}, found: {} });
    await world.delivery.pursue(offer, new AbortController().signal);
    expect(world.sent).toEqual([]);
    expect(await world.ledger.getOffer(offer.key)).toMatchObject({ state: 'offered' });
    await world.lease.end();
  });

  it('go on under the new term of a lease that ran out while a try was under way', async () => {
    let answer = (): void => undefined;
    const first = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const world = await deliveries(async (close) => {
      if (world.sent.length > 1) return lost(close);
      await first;
      return unreachable();
    });
    const offer = await world.offer('CASE-1');
    const [claimed] = await world.lease.claimOffers('acme', 1);
    const pursuit = world.delivery.pursue(claimed ?? offer, world.lease.term);
    await expect.poll(() => world.sent).toHaveLength(1);
    world.clock.advance(15_000);
    const [again] = await world.lease.claimOffers('acme', 1);
    expect(again).toMatchObject({ key: offer.key });
    await world.delivery.pursue(again ?? offer, world.lease.term);
    answer();
    await pursuit;
    expect(await world.ledger.getOffer(offer.key)).toMatchObject({ state: 'withdrawn' });
    await world.lease.end();
  });

  it('are one more try where a caller asks for it meanwhile', async () => {
    let reachable = false;
    const world = await deliveries((close) => (reachable ? lost(close) : unreachable()));
    const offer = await world.offer('CASE-1');
    const stop = new AbortController();
    const [claimed] = await world.lease.claimOffers('acme', 1);
    const pursuit = world.delivery.pursue(claimed ?? offer, stop.signal);
    expect(await world.delivery.resend(offer.key)).toMatchObject({ state: 'open' });
    reachable = true;
    expect(await world.delivery.resend(offer.key)).toMatchObject({ state: 'withdrawn' });
    await pursuit;
    await world.lease.end();
  });
});

describe('a delivery for a caller', () => {
  it('leaves the offer to whoever has claimed it, and learns from the ledger how it ends', async () => {
    const world = await deliveries(unreachable);
    const offer = await world.offer('CASE-1');
    await world.ledger.heartbeat('elsewhere', 60_000);
    const claim = { tenant: 'acme', agent: TRIAGE, holder: 'elsewhere', limit: 1 };
    expect(await world.ledger.claimOffers(claim)).toHaveLength(1);
    expect(await world.delivery.resend(offer.key)).toMatchObject({ state: 'open', problem: 'busy' });
    const waiting = world.delivery.resend(offer.key);
    await world.delivery.withdraw(offer.key, 'by a person');
    expect(await waiting).toMatchObject({ state: 'withdrawn' });
    expect(world.sent).toEqual([]);
    await world.lease.end();
  });

  it('gives the offer back when it gives up', async () => {
    const world = await deliveries(unreachable);
    const offer = await world.offer('CASE-1', BILLING, await world.delivery.prepare());
    expect(await world.lease.claimOffers('acme', 1)).toEqual([]);
    expect(await world.delivery.deliver(offer)).toMatchObject({ state: 'open', problem: 'peer_unreachable' });
    expect(await world.lease.claimOffers('acme', 1)).toHaveLength(1);
    await world.lease.end();
  });
});

describe('a lease', () => {
  it('that ran out while its process slept begins another term, and claims nothing it had before', async () => {
    const world = await deliveries(unreachable);
    const offer = await world.offer('CASE-1');
    expect(await world.lease.claimOffer(offer.key)).toBe(true);
    const { term } = world.lease;
    world.clock.advance(15_000);
    await world.ledger.heartbeat('elsewhere', 60_000);
    const claim = { tenant: 'acme', agent: TRIAGE, holder: 'elsewhere', limit: 1 };
    expect(await world.ledger.claimOffers(claim)).toHaveLength(1);
    expect(await world.lease.claimOffer(offer.key)).toBe(false);
    expect(term.aborted).toBe(true);
    expect(world.lease.term.aborted).toBe(false);
    expect(await world.ledger.isAlive(world.lease.holder)).toBe(true);
    await world.lease.end();
    expect(await world.ledger.isAlive(world.lease.holder)).toBe(false);
  });

  const lease = (ledger: LedgerStore, leaseMs: number) =>
    createLease({ ledger, agent: TRIAGE, logger: silentLogger, leaseMs, beatMs: 1 });

  it('that may have run out before it was renewed begins another term', async () => {
    const { ledger } = await deliveries(unreachable);
    let slow = false;
    const slept = lease(
      {
        ...ledger,
        heartbeat: async (holder, leaseMs) => {
          if (slow) await pause(leaseMs);
          slow = false;
          await ledger.heartbeat(holder, leaseMs);
        },
      },
      200,
    );
    await slept.begin();
    const { term } = slept;
    slow = true;
    await expect.poll(() => term.aborted).toBe(true);
    expect(slept.term.aborted).toBe(false);
    await slept.end();
  });

  it('gives back later what could not be given back', async () => {
    const world = await deliveries(unreachable);
    const offer = await world.offer('CASE-1');
    let failures = 3;
    const owing = lease(
      {
        ...world.ledger,
        release: async (...args) => {
          failures -= 1;
          if (failures >= 0) throw new HoldfastError('ledger_unavailable');
          await world.ledger.release(...args);
        },
      },
      15_000,
    );
    expect(await owing.claimOffer(offer.key)).toBe(true);
    await owing.release({ key: offer.key });
    expect(await world.lease.claimOffer(offer.key)).toBe(false);
    await expect.poll(() => world.lease.claimOffer(offer.key)).toBe(true);
    await Promise.all([owing.end(), world.lease.end()]);
  });

  it('has nothing that it does not know of after a claim whose outcome is not known', async () => {
    const world = await deliveries(unreachable);
    const offer = await world.offer('CASE-1');
    const doubting = lease(
      {
        ...world.ledger,
        claimOffers: async (claim) => {
          await world.ledger.claimOffers(claim);
          throw new HoldfastError('outcome_unknown');
        },
      },
      15_000,
    );
    await expect(doubting.claimOffers('acme', 1)).rejects.toMatchObject({ code: 'outcome_unknown' });
    await expect.poll(() => world.lease.claimOffer(offer.key)).toBe(true);
    await Promise.all([doubting.end(), world.lease.end()]);
  });
});

describe('[R-088] a lease that begins anew', () => {
  it('is of its new term from the moment at which something can be claimed under it', async () => {
    const clock = new TestClock();
    const ledger = createMemoryLedger({ clock });
    await ledger.putKind('acme', KIND);
    let atOnce: AbortSignal | null = null;
    const late: Pick<LedgerStore, 'heartbeat'> = {
      async heartbeat(holder, leaseMs) {
        await ledger.heartbeat(holder, leaseMs);
        // Another of this process looks for work before the one that renews hears of it.
        atOnce = lease.term;
      },
    };
    const options = { agent: TRIAGE, logger: silentLogger, leaseMs: 1_000, beatMs: 60_000 };
    const lease = createLease({ ledger: { ...ledger, ...late }, ...options });
    await lease.begin();
    const before = lease.term;
    await openCase(ledger, 'CASE-1');
    await offered(ledger, clock);
    clock.advance(1_000);

    expect(await lease.claimOffers('acme', 10)).toHaveLength(1);
    expect(before.aborted).toBe(true);
    expect(atOnce).toBe(lease.term);
    expect(lease.term.aborted).toBe(false);
    await lease.end();
  });
});
