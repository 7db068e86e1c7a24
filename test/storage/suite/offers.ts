import { describe, expect, it } from 'vitest';
import {
  acceptance,
  asTriage,
  BILLING,
  delivery,
  handedOver,
  intend,
  LEGAL,
  ledgerWithCase,
  type OpenLedger,
  offered,
  openCase,
  ref,
  rejection,
  start,
  TRIAGE,
} from './fixtures.js';

export function offerSuite(open: OpenLedger): void {
  describe('offers', () => {
    it('[R-060] keeps the intent and the exact bytes before anything is sent', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const command = intend(clock);
      const offer = await ledger.intendOffer(command);
      expect(offer).toEqual({
        key: delivery().key,
        ref: ref(),
        kind: 'refund',
        toAgent: BILLING,
        contract: command.contract,
        skill: command.skill,
        epoch: 3,
        digest: command.digest,
        message: command.message,
        state: 'intended',
        code: null,
        acceptBy: command.acceptBy,
        intendedAt: clock.in(0),
        closedAt: null,
        withheld: command.withheld,
        receipt: null,
        receiptKey: null,
      });
      expect(await ledger.getOffer(offer.key)).toEqual(offer);
      expect((await ledger.readAudit(ref())).at(-1)).toMatchObject({
        type: 'offer_intended',
        digest: command.digest,
        data: { toAgent: BILLING, withheld: command.withheld, loggable: { invoice_id: 'INV-77' } },
      });
    });

    it('[R-061] leaves the owner as it is while the offer is out', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      expect(await ledger.getOffer(key)).toMatchObject({ state: 'offered' });
      expect(await ledger.getCase(ref())).toMatchObject({ owner: TRIAGE, epoch: 3 });
      const length = (await ledger.readAudit(ref())).length;
      expect(await ledger.markOffered(key)).toMatchObject({ state: 'offered' });
      expect(await ledger.readAudit(ref())).toHaveLength(length);
    });

    it('refuses a second offer for a case, whoever it is for', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      await expect(ledger.intendOffer(intend(clock, { attempt: 2, toAgent: LEGAL }))).rejects.toMatchObject({
        code: 'offer_open',
      });
      expect(await ledger.listOffers('acme', {})).toHaveLength(1);
    });

    it('lets one of two offers made at once through', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const results = await Promise.allSettled([
        ledger.intendOffer(intend(clock)),
        ledger.intendOffer(intend(clock, { toAgent: LEGAL })),
      ]);
      expect(results.map((result) => result.status).sort()).toEqual(['fulfilled', 'rejected']);
      expect(await ledger.listOffers('acme', { open: true })).toHaveLength(1);
    });

    it('refuses an offer while an effect is in flight, and an attempt out of turn', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      await expect(ledger.intendOffer(intend(clock))).rejects.toMatchObject({
        code: 'effect_in_flight',
        data: { key: 'r1' },
      });
      await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: 're_1' });
      for (const attempt of [0, 2]) {
        await expect(ledger.intendOffer(intend(clock, { attempt }))).rejects.toMatchObject({
          code: 'offer_decided',
          data: { presented: attempt, current: 0 },
        });
      }
      await expect(ledger.intendOffer(intend(clock, { toAgent: TRIAGE }))).rejects.toMatchObject({
        code: 'usage',
      });
      await expect(ledger.intendOffer(intend(clock))).resolves.toBeDefined();
    });

    it('[R-082] numbers attempts on after offers and decisions under the same handoff id', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = delivery();
      expect(await ledger.lastAttempt(key)).toBe(0);
      await ledger.reject(rejection(clock, 'evidence_empty'));
      expect(await ledger.lastAttempt(key)).toBe(1);
      await expect(ledger.intendOffer(intend(clock))).rejects.toMatchObject({ code: 'offer_decided' });
      await ledger.intendOffer(intend(clock, { attempt: 2 }));
      expect(await ledger.lastAttempt(key)).toBe(2);
      expect(await ledger.lastAttempt({ ...key, sender: LEGAL })).toBe(0);
    });

    it('closes an offer by a tombstone that answers any bytes', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      const answer = '{"code":"withdrawn"}';
      const voided = await ledger.voidOffer({
        key,
        writer: TRIAGE,
        reason: 'changed',
        expired: false,
        answer,
      });
      expect(voided).toMatchObject({
        outcome: 'stored',
        decision: { verdict: 'tombstone', code: 'withdrawn', digest: null, taskId: null, answer },
      });
      expect(await ledger.getOffer(key)).toMatchObject({ state: 'withdrawn', closedAt: clock.in(0) });
      for (const text of ['please refund', 'any bytes']) {
        expect(await ledger.accept(acceptance(clock, { text }))).toEqual({ ...voided, outcome: 'decided' });
      }
      expect(await ledger.getCase(ref())).toMatchObject({ owner: TRIAGE, epoch: 3 });
      await expect(offered(ledger, clock, { attempt: 2 })).resolves.toBeDefined();
    });

    it('calls a void expired only past accept_by', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const early = await offered(ledger, clock);
      const command = { writer: TRIAGE, reason: 'accept_by', expired: true, answer: '{}' };
      await ledger.voidOffer({ ...command, key: early.key });
      expect(await ledger.getOffer(early.key)).toMatchObject({ state: 'withdrawn' });
      const late = await offered(ledger, clock, { attempt: 2 });
      clock.advance(60_001);
      await ledger.voidOffer({ ...command, key: late.key });
      expect(await ledger.getOffer(late.key)).toMatchObject({ state: 'expired' });
    });

    it('returns the decision where a void comes too late', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await handedOver(ledger, clock);
      const before = await ledger.snapshot(ref());
      const command = { key, writer: TRIAGE, reason: 'late', expired: false, answer: '{}' };
      expect(await ledger.voidOffer(command)).toEqual({ outcome: 'decided', decision: before.decisions[0] });
      expect(await ledger.snapshot(ref())).toEqual(before);
      await expect(ledger.voidOffer({ ...command, writer: LEGAL })).rejects.toMatchObject({
        code: 'not_owner',
      });
      const unknown = { ...command, key: { ...key, attempt: 9 } };
      await expect(ledger.voidOffer(unknown)).rejects.toMatchObject({ code: 'offer_unknown' });
    });

    it('does not mark a decided or unknown offer as offered', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await handedOver(ledger, clock);
      await expect(ledger.markOffered(key)).rejects.toMatchObject({ code: 'offer_decided' });
      await expect(ledger.markOffered({ ...key, attempt: 2 })).rejects.toMatchObject({
        code: 'offer_unknown',
      });
      expect(await ledger.getOffer(key)).toMatchObject({ state: 'accepted' });
      expect(await ledger.getOffer({ ...key, attempt: 2 })).toBeNull();
    });

    it('keeps the first verified receipt, with the key that verified it', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      const receipt = { key, receipt: 'jws-1', receiptKey: '{"kty":"OKP"}' };
      await expect(ledger.recordReceipt(receipt)).rejects.toMatchObject({ code: 'offer_decided' });
      await ledger.accept(acceptance(clock));
      const stored = await ledger.recordReceipt(receipt);
      expect(stored).toMatchObject({ state: 'accepted', receipt: 'jws-1', receiptKey: '{"kty":"OKP"}' });
      expect(await ledger.recordReceipt({ ...receipt, receipt: 'jws-2' })).toEqual(stored);
      expect(await ledger.getOffer(key)).toEqual(stored);
      await expect(ledger.recordReceipt({ ...receipt, key: { ...key, attempt: 2 } })).rejects.toMatchObject({
        code: 'offer_unknown',
      });
      const verified = (await ledger.readAudit(ref())).filter((entry) => entry.type === 'receipt_verified');
      expect(verified).toHaveLength(1);
    });

    it('lists offers newest first, by sender, receiver, case and openness', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await openCase(ledger, 'CASE-2');
      await handedOver(ledger, clock);
      await offered(ledger, clock, { ref: ref('CASE-2'), toAgent: LEGAL });
      const ids = async (filter: Parameters<typeof ledger.listOffers>[1]) =>
        (await ledger.listOffers('acme', filter)).map((offer) => offer.ref.caseId);
      expect(await ids({})).toEqual(['CASE-2', 'CASE-1']);
      expect(await ids({ limit: 1 })).toEqual(['CASE-2']);
      expect(await ids({ open: true })).toEqual(['CASE-2']);
      expect(await ids({ open: false })).toEqual(['CASE-1']);
      expect(await ids({ to: LEGAL })).toEqual(['CASE-2']);
      expect(await ids({ from: BILLING })).toEqual([]);
      expect(await ids({ from: TRIAGE, caseId: 'CASE-1' })).toEqual(['CASE-1']);
      expect(await ledger.listOffers('other', {})).toEqual([]);
    });
  });
}
