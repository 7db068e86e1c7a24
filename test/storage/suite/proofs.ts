import { afterEach, describe, expect, it } from 'vitest';
import { KIND, type OpenLedger } from './fixtures.js';
import { PARTIES, type PartyName, REF, transfer, transferOf, type World, worldOf } from './parties.js';

/** What a ledger takes from another organisation's, and by which proof. */
export function proofSuite(open: OpenLedger): void {
  describe('what comes from the ledger of another organisation', () => {
    let world: World;
    const seated = async (seat: PartyName): Promise<World> => {
      world = await worldOf(open, seat);
      return world;
    };
    afterEach(async () => {
      expect(await world.problems()).toEqual([]);
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
      const billings = { ...proof, toAgent: billing.url };
      const legals = { key: transfer(legal.url, triage.url, 2).key, ref: REF, toAgent: triage.url, epoch: 2 };
      const back = {
        offer: { ...(await triage.ledger.listOffers('acme', {}))[0], ...legals } as never,
        effects: [],
        provenance: [proof],
      };
      // To legal nothing is known to have been offered: it could say so of every case, and lock it.
      expect(await triage.accept(back)).toMatchObject({ outcome: 'refused', code: 'epoch_ahead' });
      expect(await triage.ledger.listQuarantined('acme')).toEqual([]);
      await expect(triage.accept(back, { provenance: [billings] })).rejects.toMatchObject({
        code: 'case_quarantined',
      });
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
  });
}
