import { afterEach, describe, expect, it } from 'vitest';
import type { OpenLedger } from './fixtures.js';
import { delivery, ledgerWithCase, offered } from './fixtures.js';
import {
  PARTIES,
  type PartyName,
  REF,
  SEPARATE,
  transferOf,
  WITHDRAWN,
  type World,
  worldOf,
} from './parties.js';

/** What a ledger does where each organisation has its own (`separate`). */
export function separateSuite(open: OpenLedger): void {
  describe('a kind with a ledger for each organisation', () => {
    let world: World;
    const seated = async (seat: PartyName): Promise<World> => {
      world = await worldOf(open, seat);
      return world;
    };
    afterEach(async () => {
      expect(await world.problems()).toEqual([]);
    });

    describe.each(['triage', 'billing'] as const)('with this ledger at %s', (seat) => {
      it('[R-061][R-165] moves the owner at the receiver first, and at the sender with the receipt', async () => {
        const { triage, billing } = await seated(seat);
        const crossing = await triage.offer(billing, 1);
        const proof = await billing.accepted(crossing);
        expect(await billing.stands()).toEqual([billing.url, 2]);
        expect(await triage.stands()).toEqual([triage.url, 1]);
        const released = await triage.ledger.releaseOffer(proof);
        expect(released).toMatchObject({
          state: 'accepted',
          receipt: proof.receipt,
          receiptKey: proof.receiptKey,
        });
        expect(await triage.stands()).toEqual([billing.url, 2]);
        expect(await triage.ledger.releaseOffer(proof)).toEqual(released);
        expect(await triage.ledger.findDecision(proof.key)).toMatchObject({
          verdict: 'accepted',
          answer: proof.receipt,
          taskId: null,
          epochAfter: 2,
        });
        for (const { ledger } of [triage, billing]) expect(await ledger.listTransfers(REF)).toEqual([proof]);
      });

      it('[R-165][R-166] takes a case on and back though the first acceptance was never heard of', async () => {
        const { triage, billing } = await seated(seat);
        const there = await billing.accepted(await triage.offer(billing, 1));
        const back = await triage.accepted(await billing.offer(triage, 2));
        expect(await triage.stands()).toEqual([triage.url, 3]);
        expect(await triage.ledger.getOffer(there.key)).toMatchObject({
          state: 'accepted',
          receipt: there.receipt,
        });
        expect(await triage.ledger.listTransfers(REF)).toEqual([there, back]);
        await billing.ledger.releaseOffer(back);
        expect(await billing.stands()).toEqual([triage.url, 3]);
        expect(await triage.start(3, 'r1')).toMatchObject({ state: 'started', epoch: 3 });
      });

      it('[R-089] goes on after a withdrawal only by the tombstone, with the next attempt', async () => {
        const { triage, billing, legal, clock } = await seated(seat);
        const first = await triage.offer(billing, 1);
        expect(await triage.ledger.markInDoubt(first.offer.key)).toMatchObject({
          state: 'in_doubt',
          closedAt: null,
        });
        await expect(triage.offer(legal, 1, { attempt: 2 })).rejects.toMatchObject({ code: 'offer_open' });
        const { outcome, decision } = await billing.withdraw(first);
        expect([outcome, decision.verdict, decision.answer]).toEqual(['stored', 'tombstone', WITHDRAWN]);
        expect(await billing.withdraw(first)).toMatchObject({ outcome: 'decided', decision });
        expect(await billing.accept(first)).toMatchObject({
          outcome: 'decided',
          decision: { verdict: 'tombstone' },
        });
        expect(await triage.close(first, { expired: true })).toMatchObject({
          state: 'withdrawn',
          code: null,
        });
        clock.advance(61_000);
        const second = await triage.offer(legal, 1, { attempt: 2 });
        clock.advance(61_000);
        await legal.withdraw(second);
        expect(await triage.close(second, { expired: true })).toMatchObject({ state: 'expired' });
        const third = await legal.accepted(await triage.offer(legal, 1, { attempt: 3 }));
        await triage.ledger.releaseOffer(third);
        expect(await triage.stands()).toEqual([legal.url, 2]);
      });

      it('[R-083][R-089] answers a withdrawal that comes too late with what was decided', async () => {
        const { triage, billing } = await seated(seat);
        const crossing = await triage.offer(billing, 1);
        const proof = await billing.accepted(crossing);
        expect(await billing.withdraw(crossing)).toMatchObject({
          outcome: 'decided',
          decision: { verdict: 'accepted' },
        });
        await triage.ledger.markInDoubt(crossing.offer.key);
        expect(await triage.ledger.releaseOffer(proof)).toMatchObject({ state: 'accepted' });
      });

      it('[R-165] closes an offer by the stored rejection, owner unchanged', async () => {
        const { triage, billing } = await seated(seat);
        const crossing = await triage.offer(billing, 1);
        expect(await billing.reject(crossing)).toMatchObject({ outcome: 'stored' });
        const { digest, key } = crossing.offer;
        const proof = {
          verdict: 'rejected',
          code: 'fact_missing',
          digest,
          answer: '{"final":true}',
        } as const;
        await expect(triage.close(crossing, { ...proof, digest: '00' })).rejects.toMatchObject({
          code: 'duplicate_conflict',
        });
        expect(await triage.close(crossing, proof)).toMatchObject({
          state: 'rejected',
          code: 'fact_missing',
        });
        expect(await triage.close(crossing, proof)).toMatchObject({ state: 'rejected' });
        await expect(triage.close(crossing)).rejects.toMatchObject({ code: 'offer_decided' });
        expect(await triage.ledger.findDecision(key)).toMatchObject({
          verdict: 'rejected',
          answer: '{"final":true}',
        });
        expect(await triage.stands()).toEqual([triage.url, 1]);
        expect(await triage.ledger.lastAttempt(key)).toBe(1);
        expect(await triage.start(1, 'r1')).toMatchObject({ state: 'started' });
      });
    });

    it('[R-061][R-166] starts no effect from the intent until the offer closes', async () => {
      const { triage, billing } = await seated('triage');
      await triage.start(1, 'r0');
      await triage.settle(1, 'r0', 'unknown');
      const crossing = await triage.offer(billing, 1, { sent: false });
      const frozen = () => expect(triage.start(1, 'r1')).rejects.toMatchObject({ code: 'effects_frozen' });
      await frozen();
      await triage.ledger.markOffered(crossing.offer.key);
      await frozen();
      await triage.ledger.markInDoubt(crossing.offer.key);
      await frozen();
      expect(await triage.ledger.markOffered(crossing.offer.key)).toMatchObject({ state: 'in_doubt' });
      expect(await triage.ledger.addNote({ ...triage.at(1), text: 'waiting' })).toMatchObject({ epoch: 1 });
      expect(await triage.settle(1, 'r0', 'done')).toMatchObject({ state: 'done' });
      await expect(triage.ledger.closeCase(triage.at(1))).rejects.toMatchObject({ code: 'case_busy' });
      await billing.withdraw(crossing);
      await triage.close(crossing);
      expect(await triage.start(1, 'r1')).toMatchObject({ state: 'started' });
    });

    it('[R-089] refuses to void: nothing but the receiver closes the offer', async () => {
      const { triage, billing, clock } = await seated('triage');
      const { offer } = await triage.offer(billing, 1);
      clock.advance(3_600_000);
      const voided = { key: offer.key, writer: triage.url, reason: 'late', expired: true, answer: '{}' };
      await expect(triage.ledger.voidOffer(voided)).rejects.toMatchObject({ code: 'withdraw_needed' });
      await expect(
        triage.ledger.recordReceipt({ key: offer.key, receipt: 'r', receiptKey: '{}' }),
      ).rejects.toMatchObject({ code: 'offer_decided' });
      expect(await triage.ledger.getOffer(offer.key)).toMatchObject({ state: 'offered', closedAt: null });
    });

    it('[R-089] refuses a withdrawn key to every offer, also where the case is known', async () => {
      const { triage, billing } = await seated('billing');
      const first = await triage.offer(billing, 1);
      await billing.withdraw(first);
      expect(await billing.stands()).toBeNull();
      await triage.close(first);
      await billing.accepted(await triage.offer(billing, 1, { attempt: 2 }));
      expect(await billing.accept(first)).toMatchObject({
        outcome: 'decided',
        decision: { verdict: 'tombstone' },
      });
      expect(await billing.reject(first)).toMatchObject({
        outcome: 'decided',
        decision: { verdict: 'tombstone' },
      });
      expect(await billing.stands()).toEqual([billing.url, 2]);
    });

    it('[R-061] supersedes at the release what was still to be done here', async () => {
      const { triage, billing } = await seated('billing');
      await billing.accepted(await triage.offer(billing, 1));
      const back = await billing.offer(triage, 2);
      const proof = await triage.accepted(back);
      expect(await billing.ledger.listWork('acme', { state: 'open' })).toHaveLength(1);
      await billing.ledger.releaseOffer(proof);
      expect(await billing.ledger.listWork('acme', {})).toMatchObject([{ state: 'superseded', epoch: 2 }]);
      await expect(billing.start(2, 'r1')).rejects.toMatchObject({ code: 'epoch_stale' });
    });

    it('[R-060] gives an offer back to be finished until its receiver has closed it', async () => {
      const { triage, billing } = await seated('triage');
      const { ledger } = triage;
      const crossing = await triage.offer(billing, 1);
      await ledger.markInDoubt(crossing.offer.key);
      await ledger.heartbeat('one', 60_000);
      const claim = { tenant: 'acme', agent: triage.url, holder: 'one', limit: 5 };
      expect(await ledger.claimOffers(claim)).toMatchObject([{ state: 'in_doubt' }]);
      await ledger.releaseOffer(await billing.accepted(crossing));
      await ledger.release('one');
      await ledger.heartbeat('two', 60_000);
      expect(await ledger.claimOffers({ ...claim, holder: 'two' })).toEqual([]);
    });

    it('[R-061] hands over within one ledger, too', async () => {
      const { triage, billing } = await seated('triage');
      const crossing = await triage.offer(billing, 1);
      const inside = Object.assign(Object.create(triage), { url: billing.url });
      const proof = await inside.accepted(crossing);
      expect(await triage.stands()).toEqual([billing.url, 2]);
      expect(await triage.ledger.getOffer(proof.key)).toMatchObject({ state: 'accepted', receipt: null });
      expect(await triage.ledger.releaseOffer(proof)).toMatchObject({ receipt: proof.receipt });
      expect(await triage.ledger.listTransfers(REF)).toEqual([proof]);
    });

    it('[R-061] withdraws within one ledger, too', async () => {
      const { triage, billing } = await seated('triage');
      const crossing = await triage.offer(billing, 1);
      await triage.withdraw(crossing);
      expect(await triage.close(crossing)).toMatchObject({ state: 'withdrawn' });
      expect(await triage.stands()).toEqual([triage.url, 1]);
    });

    it('[R-087] lets only the authenticated sender withdraw under its key', async () => {
      const { triage, billing } = await seated('billing');
      const { offer } = await triage.offer(billing, 1);
      const { key, ref } = offer;
      const principal = { agent: PARTIES.legal, tenant: 'acme', tokenId: 'jti' };
      await expect(
        billing.ledger.withdraw({ key, ref, answer: '{}', principal, toAgent: billing.url }),
      ).rejects.toMatchObject({
        code: 'usage',
      });
    });

    it('[R-078] keeps to the mode in which a kind was first stored', async () => {
      const { triage } = await seated('triage');
      const { ledger } = triage;
      const change = ledger.putKind('acme', { ...SEPARATE, mode: 'shared' }, { replace: true });
      await expect(change).rejects.toMatchObject({ code: 'kind_conflict' });
      const limits = { ...SEPARATE.limits, maxHops: 4 };
      expect(await ledger.putKind('acme', { ...SEPARATE, limits }, { replace: true })).toBe('replaced');
    });

    it('asks for what an acceptance and an offer across ledgers need', async () => {
      const { triage, billing } = await seated('triage');
      const bare = {
        ...triage.at(1),
        attempt: 1,
        toAgent: billing.url,
        contract: 'refund-dispute/1',
        skill: 's',
      };
      const rest = {
        digest: '00',
        message: '{}',
        acceptBy: triage.clock.in(1000),
        withheld: [],
        loggable: {},
      };
      await expect(triage.ledger.intendOffer({ ...bare, ...rest })).rejects.toMatchObject({ code: 'usage' });
      const crossing = await triage.offer(billing, 1);
      const { separate, ...command } = triage.acceptance(crossing);
      expect(separate).toBeDefined();
      await expect(triage.ledger.accept({ ...command, toAgent: billing.url })).rejects.toMatchObject({
        code: 'usage',
      });
    });
  });

  describe('a shared kind', () => {
    it('knows none of what is for ledgers apart', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const offer = await offered(ledger, clock);
      const { key, ref, principal } = delivery();
      await expect(ledger.markInDoubt(key)).rejects.toMatchObject({ code: 'usage' });
      await expect(ledger.releaseOffer(transferOf(offer))).rejects.toMatchObject({ code: 'usage' });
      const tombstone = {
        key,
        verdict: 'tombstone',
        code: 'withdrawn',
        digest: null,
        answer: '{}',
        expired: false,
      } as const;
      await expect(ledger.closeOffer(tombstone)).rejects.toMatchObject({ code: 'usage' });
      await expect(
        ledger.withdraw({ key, ref, answer: '{}', principal, toAgent: PARTIES.billing }),
      ).rejects.toMatchObject({
        code: 'usage',
      });
      expect(await ledger.getOffer(key)).toMatchObject({ state: 'offered' });
      expect(await ledger.listTransfers(ref)).toEqual([]);
    });
  });
}
