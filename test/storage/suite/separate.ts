import { afterEach, describe, expect, it } from 'vitest';
import type { OpenLedger } from './fixtures.js';
import { delivery, KIND, ledgerWithCase, offered } from './fixtures.js';
import {
  PARTIES,
  type PartyName,
  REF,
  SEPARATE,
  transfer,
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

    it('[R-066] refuses a receipt for anything but what was offered', async () => {
      const { triage, billing, legal } = await seated('triage');
      const { offer } = await triage.offer(billing, 1);
      const other = [
        { digest: '00' },
        { toAgent: legal.url },
        { oldEpoch: 2, newEpoch: 3 },
        { newEpoch: 3 },
        { ref: { ...REF, caseId: 'CASE-2' } },
      ];
      for (const over of other) {
        await expect(triage.ledger.releaseOffer(transferOf(offer, over))).rejects.toMatchObject({
          code: 'receipt_invalid',
        });
      }
      const unknown = transferOf(offer, { key: { ...offer.key, attempt: 2 } });
      await expect(triage.ledger.releaseOffer(unknown)).rejects.toMatchObject({ code: 'offer_unknown' });
      expect(await triage.stands()).toEqual([triage.url, 1]);
      expect(await triage.ledger.listQuarantined('acme')).toEqual([]);
    });

    it('[R-166] quarantines a case whose withdrawn offer turns out to be accepted', async () => {
      const { triage, billing, legal } = await seated('triage');
      const first = await triage.offer(billing, 1);
      await triage.close(first);
      const second = await triage.offer(legal, 1, { attempt: 2 });
      await triage.ledger.releaseOffer(await legal.accepted(second));
      const proof = transferOf(first.offer);
      for (let times = 0; times < 2; times += 1) {
        await expect(triage.ledger.releaseOffer(proof)).rejects.toMatchObject({ code: 'case_quarantined' });
      }
      expect(await triage.ledger.listQuarantined('acme')).toMatchObject([
        {
          ref: REF,
          reason: 'receipt_contradicted',
          witnessed: { attempt: 1, toAgent: billing.url, epoch: 2 },
          found: { owner: legal.url, epoch: 2, offer: 'withdrawn' },
        },
      ]);
    });

    it('[R-166] quarantines a case of which a later envelope proves another handover than the ledger knows', async () => {
      const { triage, billing, legal } = await seated('triage');
      await triage.offer(billing, 1);
      const { key, ...rest } = transfer(triage.url, legal.url, 1);
      const proof = { ...rest, key: { ...key, attempt: 2 } };
      const legals = { key: transfer(legal.url, triage.url, 2).key, ref: REF, toAgent: triage.url, epoch: 2 };
      const back = {
        offer: { ...(await triage.ledger.listOffers('acme', {}))[0], ...legals } as never,
        effects: [],
        provenance: [proof],
      };
      await expect(triage.accept(back)).rejects.toMatchObject({ code: 'case_quarantined' });
      expect(await triage.ledger.listQuarantined('acme')).toMatchObject([{ reason: 'receipt_contradicted' }]);
      expect(await triage.stands()).toEqual([triage.url, 1]);
      await expect(triage.start(1, 'r1')).rejects.toMatchObject({ code: 'case_quarantined' });
    });

    it('[R-166] follows a case that went on without it, and takes it back', async () => {
      const { triage, billing, legal } = await seated('triage');
      const one = await billing.accepted(await triage.offer(billing, 1));
      const two = await legal.accepted(await billing.offer(legal, 2));
      const three = await triage.accepted(await legal.offer(triage, 3));
      expect(await triage.stands()).toEqual([triage.url, 4]);
      expect(await triage.ledger.listTransfers(REF)).toEqual([one, two, three]);
      expect(await triage.ledger.getCase(REF)).toMatchObject({
        hops: [triage.url, billing.url, legal.url],
        contract: 'refund-dispute/1',
      });
      const again = await billing.accepted(await triage.offer(billing, 4));
      expect(again.newEpoch).toBe(5);
      expect(await billing.stands()).toEqual([billing.url, 5]);
    });

    it('[R-165] takes nothing from an envelope whose proofs do not lead to its sender', async () => {
      const { triage, billing, legal } = await seated('triage');
      const crossing = await triage.offer(billing, 1);
      const proof = await billing.accepted(crossing);
      const back = await billing.offer(triage, 2);
      const wrong = [[], [{ ...proof, digest: '00' }], [transfer(legal.url, billing.url, 1)]];
      for (const provenance of wrong) {
        expect(await triage.accept(back, { provenance })).toMatchObject({
          outcome: 'refused',
          code: 'epoch_ahead',
        });
      }
      const late = { provenance: [proof], acceptBy: '2020-01-01T00:00:00.000Z' };
      expect(await triage.accept(back, late)).toMatchObject({ outcome: 'refused', code: 'offer_expired' });
      expect(await triage.stands()).toEqual([triage.url, 1]);
      expect(await triage.ledger.getOffer(crossing.offer.key)).toMatchObject({ state: 'offered' });
    });

    it('[R-074] registers an unknown case for its root, or for whom the receipts lead to from the root', async () => {
      const { triage, billing, legal } = await seated('legal');
      const one = await billing.accepted(await triage.offer(billing, 1));
      const crossing = await billing.offer(legal, 2);
      const wrong = [
        [],
        [{ ...one, toAgent: triage.url }],
        [{ ...one, oldEpoch: 2, newEpoch: 3 }],
        [transfer(PARTIES.legal, billing.url, 1)],
        [{ ...one, ref: { ...REF, caseId: 'CASE-2' } }],
        [one, transfer(billing.url, triage.url, 2)],
      ];
      for (const provenance of wrong) {
        expect(await legal.accept(crossing, { provenance })).toMatchObject({
          outcome: 'refused',
          code: 'case_unknown',
        });
      }
      expect(await legal.stands()).toBeNull();
      const two = await legal.accepted(crossing);
      expect(await legal.stands()).toEqual([legal.url, 3]);
      expect(await legal.ledger.listTransfers(REF)).toEqual([one, two]);
      const types = (await legal.ledger.readAudit(REF)).map(({ type }) => type);
      expect(types).toEqual(['case_imported', 'transfer_learned', 'handoff_accepted']);
      expect(await billing.ledger.releaseOffer(two)).toMatchObject({ state: 'accepted' });
    });

    it('[R-074] keeps the rule of a shared kind that an unknown case is refused', async () => {
      const { triage, billing } = await seated('billing');
      const crossing = await triage.offer(billing, 1);
      await billing.ledger.putKind('acme', { ...KIND, kind: 'refund' });
      expect(await billing.accept(crossing, { kind: 'refund' })).toMatchObject({
        outcome: 'refused',
        code: 'case_unknown',
      });
      expect(await billing.accept(crossing, { kind: 'other' })).toMatchObject({
        outcome: 'refused',
        code: 'case_unknown',
      });
    });

    it('[R-080][R-166] inherits every effect key, so that none starts twice in two ledgers', async () => {
      const { triage, billing } = await seated('billing');
      for (const key of ['done', 'failed', 'unknown', 'late']) await triage.start(1, key);
      await triage.settle(1, 'done', 'done');
      await triage.settle(1, 'failed', 'failed');
      await triage.settle(1, 'unknown', 'unknown');
      triage.clock.advance(30_000);
      const crossing = await triage.offer(billing, 1);
      await billing.accepted(crossing);
      const states = async () =>
        Object.fromEntries((await billing.ledger.listEffects(REF)).map(({ key, state }) => [key, state]));
      expect(await states()).toEqual({ done: 'done', failed: 'failed', unknown: 'unknown', late: 'unknown' });
      for (const key of ['done', 'unknown', 'late']) {
        await expect(billing.start(2, key)).rejects.toMatchObject({ code: 'effect_duplicate' });
      }
      await expect(billing.start(2, 'more', '70.01')).rejects.toMatchObject({ code: 'cap_exceeded' });
      expect(await billing.start(2, 'failed', '70.00')).toMatchObject({ state: 'started', epoch: 2 });
      await billing.settle(2, 'unknown', 'done');
      await billing.settle(2, 'late', 'failed');
      expect(await states()).toEqual({ done: 'done', failed: 'started', unknown: 'done', late: 'failed' });
    });

    it('[R-080] learns on its return what became of the effects, and never unlearns a done one', async () => {
      const { triage, billing } = await seated('triage');
      for (const key of ['a', 'b', 'c', 'd']) await triage.start(1, key);
      for (const key of ['a', 'b']) await triage.settle(1, key, 'unknown');
      await triage.settle(1, 'c', 'failed');
      await triage.settle(1, 'd', 'done');
      await billing.accepted(await triage.offer(billing, 1));
      await billing.settle(2, 'a', 'done');
      await billing.settle(2, 'b', 'failed');
      await billing.start(2, 'c', '5.00');
      await billing.settle(2, 'c', 'unknown');
      await billing.start(2, 'e');
      await billing.settle(2, 'e', 'done');
      const back = await billing.offer(triage, 2);
      const effects = back.effects.map((effect) =>
        effect.key === 'd' ? { ...effect, state: 'failed' as const } : effect,
      );
      await triage.accepted(back, { effects });
      const found = await triage.ledger.listEffects(REF);
      expect(found.map(({ key, state, owner }) => [key, state, owner])).toEqual([
        ['a', 'done', triage.url],
        ['b', 'failed', triage.url],
        ['c', 'unknown', billing.url],
        ['d', 'done', triage.url],
        ['e', 'done', billing.url],
      ]);
      expect(await triage.start(3, 'b')).toMatchObject({ state: 'started', epoch: 3 });
    });

    it('[R-069] refuses effects that are none, before anything is stored', async () => {
      const { triage, billing } = await seated('billing');
      const crossing = await triage.offer(billing, 1);
      const bad = { key: 'two words', operation: 'refund', amount: null, state: 'done' } as const;
      await expect(billing.accept(crossing, { effects: [bad] })).rejects.toMatchObject({
        code: 'schema_invalid',
      });
      expect(await billing.stands()).toBeNull();
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
      await expect(billing.ledger.withdraw({ key, ref, answer: '{}', principal })).rejects.toMatchObject({
        code: 'usage',
      });
    });

    it('keeps to the mode in which a kind was first stored', async () => {
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
      await expect(ledger.withdraw({ key, ref, answer: '{}', principal })).rejects.toMatchObject({
        code: 'usage',
      });
      expect(await ledger.getOffer(key)).toMatchObject({ state: 'offered' });
      expect(await ledger.listTransfers(ref)).toEqual([]);
    });
  });
}
