import { describe, expect, it } from 'vitest';
import type { LedgerStore, Quarantine } from '../../../src/ledger/index.js';
import {
  acceptance,
  asBilling,
  asTriage,
  BILLING,
  delivery,
  handedOver,
  intend,
  KIND,
  ledgerWithCase,
  type OpenLedger,
  offered,
  openCase,
  ref,
  rejection,
  start,
  type TestClock,
  TRIAGE,
} from './fixtures.js';

const regressed = (caseId = 'CASE-1'): Omit<Quarantine, 'at'> => ({
  ref: ref(caseId),
  reason: 'epoch_regressed',
  witnessed: { epoch: 7, receipt: 'sha256:00' },
  found: { epoch: 3 },
});

/** Everything that can be asked of the case or of its offer. */
function writes(ledger: LedgerStore, clock: TestClock): Record<string, () => Promise<unknown>> {
  const { key, principal, digest } = delivery();
  const proved = { key, ref: ref(), toAgent: BILLING, oldEpoch: 3, newEpoch: 4, digest };
  const transfer = { ...proved, receipt: 'r', receiptKey: '{}' };
  return {
    openCase: () => openCase(ledger, 'CASE-1'),
    closeCase: () => ledger.closeCase(asTriage),
    addNote: () => ledger.addNote({ ...asTriage, text: 'x' }),
    addNoteStale: () => ledger.addNote({ ...asTriage, epoch: 2, text: 'x' }),
    intendOffer: () => ledger.intendOffer(intend(clock, { attempt: 2 })),
    markOffered: () => ledger.markOffered(key),
    voidOffer: () => ledger.voidOffer({ key, writer: TRIAGE, reason: 'x', expired: false, answer: '{}' }),
    recordReceipt: () => ledger.recordReceipt({ key, receipt: 'r', receiptKey: '{}' }),
    markInDoubt: () => ledger.markInDoubt(key),
    releaseOffer: () => ledger.releaseOffer(transfer),
    closeOffer: () =>
      ledger.closeOffer({ key, verdict: 'rejected', code: 'x', digest, answer: '{}', expired: false }),
    withdraw: () => ledger.withdraw({ key, ref: ref(), answer: '{}', principal, toAgent: BILLING }),
    accept: () => ledger.accept(acceptance(clock)),
    reject: () => ledger.reject(rejection(clock, 'fact_missing')),
    recordDelivery: () => ledger.recordDelivery(key, ref(), principal, digest, 'delivery_repeated'),
    recordDeliveryElsewhere: () =>
      ledger.recordDelivery(key, ref('CASE-2'), principal, digest, 'delivery_repeated'),
    startEffect: () => ledger.startEffect({ ...asTriage, ...start('r1') }),
    settleEffect: () => ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: null }),
    settleWork: () => ledger.settleWork({ ...asTriage, workId: 'w', state: 'done', result: null }),
  };
}

export function quarantineSuite(open: OpenLedger): void {
  describe('quarantine', () => {
    it('closes a case to every write, and writes nothing at all', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      const before = await ledger.snapshot(ref());
      await ledger.quarantine(regressed());
      for (const [name, write] of Object.entries(writes(ledger, clock))) {
        await expect(write(), name).rejects.toMatchObject({ code: 'case_quarantined' });
      }
      expect(await ledger.snapshot(ref())).toEqual(before);
    });

    it('holds for a decided offer too, whose key leads to the case', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await handedOver(ledger, clock);
      await ledger.quarantine(regressed());
      const receipt = { key, receipt: 'r', receiptKey: '{}' };
      await expect(ledger.recordReceipt(receipt)).rejects.toMatchObject({ code: 'case_quarantined' });
      await expect(ledger.accept(acceptance(clock))).rejects.toMatchObject({ code: 'case_quarantined' });
      await expect(ledger.accept(acceptance(clock, { caseId: 'CASE-9' }))).resolves.toMatchObject({
        outcome: 'refused',
      });
      await expect(ledger.addNote({ ...asBilling, text: 'x' })).rejects.toMatchObject({
        code: 'case_quarantined',
      });
    });

    it('leaves the other cases alone', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.putKind('other', KIND);
      const elsewhere = { ...asTriage, ref: ref('CASE-1', 'other') };
      await ledger.openCase({ ...elsewhere, kind: 'refund', owner: TRIAGE, actor: TRIAGE });
      await openCase(ledger, 'CASE-2');
      await ledger.quarantine(regressed());
      await ledger.addNote({ ...asTriage, ref: ref('CASE-2'), text: 'x' });
      await ledger.addNote({ ...elsewhere, text: 'x' });
      expect(await ledger.listNotes(ref('CASE-2'))).toHaveLength(1);
      expect(await ledger.listQuarantined('other')).toEqual([]);
    });

    it('keeps the first reason, also for a case that is missing', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const missing: Omit<Quarantine, 'at'> = {
        ref: ref('CASE-9'),
        reason: 'case_missing',
        witnessed: { epoch: 2 },
        found: {},
      };
      await ledger.quarantine(missing);
      const at = clock.in(0);
      clock.advance(1000);
      await ledger.quarantine({ ...missing, reason: 'audit_forked' });
      await ledger.quarantine(regressed());
      expect(await ledger.listQuarantined('acme')).toEqual([
        { ...missing, at },
        { ...regressed(), at: clock.in(0) },
      ]);
      await expect(openCase(ledger, 'CASE-9')).rejects.toMatchObject({ code: 'case_quarantined' });
    });

    it('takes offers and work items out of what can be claimed', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      await openCase(ledger, 'CASE-2');
      await offered(ledger, clock, { ref: ref('CASE-2') });
      await ledger.heartbeat('p1', 1000);
      await ledger.quarantine(regressed());
      await ledger.quarantine(regressed('CASE-2'));
      const claim = { tenant: 'acme', holder: 'p1', limit: 10 };
      expect(await ledger.claimOffers({ ...claim, agent: TRIAGE })).toEqual([]);
      expect(await ledger.claimWork({ ...claim, agent: BILLING })).toEqual([]);
    });
  });

  describe('attention', () => {
    it('lists unknown effects and quarantined cases, oldest first', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('overdue', '1.00') });
      const limitAt = clock.in(KIND.limits.effectLimitMs);
      clock.advance(1000);
      await ledger.startEffect({ ...asTriage, ...start('told', '2.00') });
      await ledger.startEffect({ ...asTriage, ...start('settled', '3.00') });
      await ledger.startEffect({ ...asTriage, ...start('proved', '4.00') });
      await ledger.settleEffect({ ...asTriage, key: 'settled', state: 'done', outcome: null });
      await ledger.settleEffect({ ...asTriage, key: 'proved', state: 'failed', outcome: null });
      expect(await ledger.listAttention('acme')).toEqual([]);
      clock.advance(1000);
      const toldAt = clock.in(0);
      await ledger.settleEffect({ ...asTriage, key: 'told', state: 'unknown', outcome: null });
      clock.advance(1000);
      const at = clock.in(0);
      await ledger.quarantine(regressed('CASE-2'));
      clock.advance(KIND.limits.effectLimitMs);

      const { ref: _, ...quarantined } = regressed('CASE-2');
      const items = await ledger.listAttention('acme');
      expect(items).toEqual([
        {
          what: 'effect_unknown',
          ref: ref(),
          since: toldAt,
          data: expect.objectContaining({
            key: 'told',
            operation: 'refund',
            amount: { amount: '2.00', currency: 'EUR' },
            owner: TRIAGE,
            epoch: 3,
          }),
        },
        { what: 'case_quarantined', ref: ref('CASE-2'), since: at, data: quarantined },
        {
          what: 'effect_unknown',
          ref: ref(),
          since: limitAt,
          data: expect.objectContaining({ key: 'overdue' }),
        },
      ]);
      expect(await ledger.listAttention('acme', 2)).toEqual(items.slice(0, 2));
      expect(await ledger.listAttention('other')).toEqual([]);
      await ledger.settleEffect({ ...asTriage, key: 'overdue', state: 'done', outcome: null });
      expect(await ledger.listAttention('acme')).toEqual(items.slice(0, 2));
    });
  });

  describe('the head of a chain', () => {
    it('is its last entry, and any hash can be asked for', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.addNote({ ...asTriage, text: 'x' });
      const entries = await ledger.readAudit(ref());
      expect(await ledger.auditHead(ref())).toEqual({ seq: 2, hash: entries[1]?.hash });
      expect(await ledger.auditHash(ref(), 1)).toBe(entries[0]?.hash);
      expect(await ledger.auditHash(ref(), 3)).toBeNull();
      expect(await ledger.auditHead(ref('CASE-9'))).toBeNull();
    });
  });
}
