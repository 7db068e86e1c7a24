import { describe, expect, it } from 'vitest';
import {
  acceptance,
  asBilling,
  asTriage,
  BILLING,
  delivery,
  handedOver,
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

export function decisionSuite(open: OpenLedger): void {
  describe('acceptance', () => {
    it('[R-073][R-079] moves owner and epoch, closes the offer and makes one work item in one commit', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      const result = await ledger.accept(acceptance(clock));
      expect(result).toMatchObject({
        outcome: 'accepted',
        decision: { verdict: 'accepted', epochBefore: 3, epochAfter: 4, caseId: 'CASE-1', code: null },
        work: { owner: BILLING, epoch: 4, state: 'open', key },
      });
      const snapshot = await ledger.snapshot(ref());
      expect(snapshot.case).toMatchObject({
        owner: BILLING,
        epoch: 4,
        status: 'open',
        contract: 'refund-dispute/1',
        hops: [TRIAGE],
        tasksLeft: 4,
      });
      expect(snapshot.offers.map((offer) => offer.state)).toEqual(['accepted']);
      expect(snapshot.work).toHaveLength(1);
      expect(await ledger.findDecision(key)).toEqual(snapshot.decisions[0]);
    });

    it('tells in one answer what an offer is judged by, before the decision and after it', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const command = acceptance(clock);
      const standing = () => ledger.offerStanding(command.key, command.ref, command.kind);
      const before = {
        incarnation: await ledger.incarnation(),
        decision: null,
        pending: null,
        case: await ledger.getCase(ref()),
        kind: await ledger.getKind('acme', command.kind),
      };
      expect(before.case).toMatchObject({ owner: TRIAGE });
      expect(before.kind).toMatchObject({ kind: command.kind });
      expect(await standing()).toEqual(before);
      expect(await ledger.offerStanding(command.key, ref('C-none'), 'none')).toEqual({
        ...before,
        case: null,
        kind: null,
      });
      await ledger.accept(command);
      expect(await standing()).toEqual({
        ...before,
        decision: await ledger.findDecision(command.key),
        case: await ledger.getCase(ref()),
      });
    });

    it('[R-079] writes the task with the decision, visible to the sender alone', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const command = acceptance(clock);
      await ledger.accept(command);
      expect(await ledger.getTask('acme', TRIAGE, command.task.id)).toMatchObject({
        peer: TRIAGE,
        version: 1,
        state: 'TASK_STATE_COMPLETED',
        handoffId: 'CASE-1:4',
        task: command.task.task,
      });
      expect(await ledger.getTask('acme', LEGAL, command.task.id)).toBeNull();
    });

    it('[R-083][R-086] answers a resend with the stored decision, and audits it', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      const first = await ledger.accept(acceptance(clock));
      clock.advance(3_600_000);
      const second = await ledger.accept(acceptance(clock, { answer: '{"receipt":"another"}' }));
      expect(second.outcome).toBe('decided');
      expect(second).toMatchObject({ decision: first.outcome === 'accepted' ? first.decision : {} });
      const types = (await ledger.readAudit(ref())).map((entry) => entry.type);
      expect(types.slice(-2)).toEqual(['handoff_accepted', 'delivery_repeated']);
      expect((await ledger.snapshot(ref())).work).toHaveLength(1);
    });

    it('[R-082] refuses other bytes under a decided key, and changes nothing but the audit', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      const before = await ledger.snapshot(ref());
      expect(await ledger.accept(acceptance(clock, { text: 'refund twice' }))).toEqual({
        outcome: 'conflict',
      });
      expect(await ledger.reject(rejection(clock, 'schema_invalid', { text: 'refund twice' }))).toEqual({
        outcome: 'conflict',
      });
      const { audit, ...after } = await ledger.snapshot(ref());
      expect({ ...after, audit: before.audit }).toEqual(before);
      expect(audit.at(-1)).toMatchObject({ type: 'delivery_conflict', rule: 'duplicate_conflict' });
    });

    it("[R-082] refuses bytes that are not those of the ledger's own offer", async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      expect(await ledger.accept(acceptance(clock, { text: 'forged' }))).toEqual({ outcome: 'conflict' });
      expect(await ledger.findDecision(key)).toBeNull();
      expect(await ledger.getOffer(key)).toMatchObject({ state: 'offered' });
    });

    it('[R-074] refuses an unknown case', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      expect(await ledger.accept(acceptance(clock, { caseId: 'CASE-9' }))).toMatchObject({
        outcome: 'refused',
        code: 'case_unknown',
      });
    });

    it('[R-072][R-166] refuses an older epoch with both numbers, and a newer one', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      expect(await ledger.accept(acceptance(clock, { attempt: 2 }))).toEqual({
        outcome: 'refused',
        code: 'epoch_stale',
        data: { presented: 3, current: 4 },
      });
      expect(await ledger.accept(acceptance(clock, { epoch: 5 }))).toMatchObject({ code: 'epoch_ahead' });
    });

    it('[R-071] refuses a sender that does not own the case', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      expect(await ledger.accept(acceptance(clock, { sender: LEGAL }))).toMatchObject({ code: 'not_owner' });
    });

    it('[R-087] refuses a key that is not that of the authenticated peer', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      const { principal } = delivery({ sender: LEGAL });
      await expect(ledger.accept(acceptance(clock, { principal }))).rejects.toMatchObject({ code: 'usage' });
      await expect(ledger.reject(rejection(clock, 'withdrawn', { principal }))).rejects.toMatchObject({
        code: 'usage',
      });
      expect(await ledger.findDecision(key)).toBeNull();
    });

    it("[R-087] keeps another peer's decision under the same handoff id apart", async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      const foreign = rejection(clock, 'not_owner', { sender: LEGAL });
      expect(await ledger.reject(foreign)).toMatchObject({ outcome: 'stored' });
      expect(await ledger.accept(acceptance(clock))).toMatchObject({ outcome: 'accepted' });
    });

    it('refuses a closed case and a kind that is not the case’s', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      expect(await ledger.accept(acceptance(clock, { kind: 'order' }))).toMatchObject({
        code: 'kind_unknown',
      });
      await ledger.closeCase(asTriage);
      expect(await ledger.accept(acceptance(clock))).toMatchObject({ code: 'case_closed' });
    });

    it('refuses an offer past accept_by by the clock of the ledger', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { acceptBy } = await offered(ledger, clock);
      clock.advance(60_000);
      const onTime = acceptance(clock, { acceptBy });
      clock.advance(1);
      expect(await ledger.accept(onTime)).toMatchObject({ outcome: 'refused', code: 'offer_expired' });
      const never = acceptance(clock, { acceptBy: 'tomorrow' });
      expect(await ledger.accept(never)).toMatchObject({ outcome: 'refused', code: 'offer_expired' });
      expect((await ledger.snapshot(ref())).case).toMatchObject({ owner: TRIAGE, epoch: 3 });
    });

    it('takes an offer without a row only while no other is open', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      expect(await ledger.accept(acceptance(clock, { attempt: 7, text: 'other' }))).toMatchObject({
        code: 'offer_closed',
      });
      await ledger.voidOffer({ key, writer: TRIAGE, reason: 'operator', expired: false, answer: '{}' });
      expect(await ledger.accept(acceptance(clock, { attempt: 7, text: 'other' }))).toMatchObject({
        outcome: 'accepted',
      });
    });

    it('throws while an effect is in flight, and decides nothing', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      const before = await ledger.snapshot(ref());
      await expect(ledger.accept(acceptance(clock))).rejects.toMatchObject({ code: 'effect_in_flight' });
      expect(await ledger.snapshot(ref())).toEqual(before);
      expect(await ledger.getOffer(key)).toMatchObject({ state: 'offered' });
    });

    it('refuses an offer after which an effect was started, however it ended', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'failed', outcome: null });
      expect(await ledger.accept(acceptance(clock))).toMatchObject({
        outcome: 'refused',
        code: 'case_changed',
      });
    });

    it('accepts where all effects are older than the offer, even at the same instant', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: 're_1' });
      await offered(ledger, clock);
      expect(await ledger.accept(acceptance(clock))).toMatchObject({ outcome: 'accepted' });
    });

    it('supersedes the work the old owner left open', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      const back = { sender: BILLING, epoch: 4, toAgent: TRIAGE, hops: [TRIAGE, BILLING], tasksLeft: 3 };
      expect(await ledger.accept(acceptance(clock, back))).toMatchObject({ outcome: 'accepted' });
      const { work } = await ledger.snapshot(ref());
      expect(work.map(({ owner, state }) => [owner, state])).toEqual([
        [BILLING, 'superseded'],
        [TRIAGE, 'open'],
      ]);
    });

    it('only ever tightens caps and prohibitions along a chain', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      await ledger.accept(
        acceptance(clock, {
          sender: BILLING,
          epoch: 4,
          toAgent: LEGAL,
          constraints: {
            caps: { refund: { amount: '80.00', currency: 'EUR' }, notify: { amount: '1', currency: 'EUR' } },
            prohibitions: ['publish'],
            operations: ['refund', 'notify'],
          },
        }),
      );
      expect((await ledger.getCase(ref()))?.constraints).toEqual({
        caps: { refund: { amount: '50.00', currency: 'EUR' }, notify: { amount: '1', currency: 'EUR' } },
        prohibitions: ['contact_customer', 'publish'],
        operations: ['refund', 'notify'],
      });
    });

    it('[R-073][R-079][R-083] gives 20 identical offers at once one decision and one work item', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      const results = await Promise.all(Array.from({ length: 20 }, () => ledger.accept(acceptance(clock))));
      expect(results.filter((result) => result.outcome === 'accepted')).toHaveLength(1);
      expect(results.filter((result) => result.outcome === 'decided')).toHaveLength(19);
      const decisions = results.map((result) => ('decision' in result ? result.decision : null));
      expect(new Set(decisions.map((decision) => JSON.stringify(decision))).size).toBe(1);
      const snapshot = await ledger.snapshot(ref());
      expect(snapshot.decisions).toHaveLength(1);
      expect(snapshot.work).toHaveLength(1);
      expect(snapshot.case?.epoch).toBe(4);
    });
  });

  describe('rejection', () => {
    it('[R-064] stores the verdict, closes the offer and leaves the owner at the same epoch', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      const command = rejection(clock, 'evidence_empty', { data: { presented: 3 } });
      expect(await ledger.reject(command)).toMatchObject({
        outcome: 'stored',
        decision: { verdict: 'rejected', code: 'evidence_empty', epochBefore: 3, epochAfter: 3 },
      });
      expect(await ledger.getOffer(key)).toMatchObject({ state: 'rejected', code: 'evidence_empty' });
      expect(await ledger.getCase(ref())).toMatchObject({ owner: TRIAGE, epoch: 3 });
      await expect(ledger.addNote({ ...asTriage, text: 'still mine' })).resolves.toBeDefined();
    });

    it('[R-083] answers a rejected offer that arrives late with the stored rejection', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      const stored = await ledger.reject(rejection(clock, 'evidence_empty'));
      await ledger.accept(acceptance(clock, { attempt: 2, text: 'corrected' }));
      clock.advance(86_400_000);
      expect(await ledger.accept(acceptance(clock))).toEqual({ ...stored, outcome: 'decided' });
      expect((await ledger.snapshot(ref())).case).toMatchObject({ owner: BILLING, epoch: 4 });
    });

    it('[R-082] judges a corrected attempt afresh', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      await ledger.reject(rejection(clock, 'evidence_empty'));
      const next = await offered(ledger, clock, { attempt: 2, text: 'with evidence' });
      expect(next.key).toMatchObject({ handoffId: 'CASE-1:4', attempt: 2 });
      expect(await ledger.accept(acceptance(clock, { attempt: 2, text: 'with evidence' }))).toMatchObject({
        outcome: 'accepted',
      });
    });

    it('never fails for want of a case', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const command = rejection(clock, 'case_unknown', { caseId: 'CASE-9' });
      expect(await ledger.reject(command)).toMatchObject({
        outcome: 'stored',
        decision: { caseId: 'CASE-9', epochBefore: null, epochAfter: null },
      });
      expect(await ledger.findDecision(command.key)).not.toBeNull();
      expect((await ledger.readAudit(ref('CASE-9'))).map((entry) => entry.type)).toEqual([
        'handoff_rejected',
      ]);
      await openCase(ledger, 'CASE-9');
      expect((await ledger.readAudit(ref('CASE-9'))).map((entry) => entry.seq)).toEqual([1, 2]);
    });

    it('[R-155] records the cause of every decision', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      await ledger.reject(rejection(clock, 'evidence_empty'));
      const { key } = await offered(ledger, clock, { attempt: 2 });
      await ledger.voidOffer({ key, writer: TRIAGE, reason: 'operator', expired: false, answer: '{}' });
      await ledger.accept(acceptance(clock, { attempt: 3 }));
      const decided = (await ledger.readAudit(ref())).filter((entry) =>
        ['handoff_rejected', 'offer_closed', 'handoff_accepted'].includes(entry.type),
      );
      const cause = {
        handoffId: 'CASE-1:4',
        epochBefore: 3,
        digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      };
      expect(decided).toMatchObject([
        { ...cause, attempt: 1, epochAfter: 3, rule: 'evidence_empty' },
        { ...cause, attempt: 2, epochAfter: 3, rule: 'H4' },
        { ...cause, attempt: 3, epochAfter: 4, rule: 'H4' },
      ]);
    });

    it('[R-086] audits deliveries that were answered from the stored decision', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      const { key, principal, digest } = delivery();
      await ledger.recordDelivery(key, ref(), principal, digest, 'delivery_repeated');
      await ledger.recordDelivery(key, ref(), principal, '0'.repeat(64), 'delivery_conflict');
      expect((await ledger.readAudit(ref())).slice(-2)).toMatchObject([
        { type: 'delivery_repeated', actor: TRIAGE, attempt: 1, data: { tokenId: 'jti-1' } },
        { type: 'delivery_conflict', digest: '0'.repeat(64) },
      ]);
    });

    it('lets the new owner write with the new epoch, and nobody with the old one', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      await expect(ledger.addNote({ ...asBilling, text: 'mine' })).resolves.toMatchObject({ epoch: 4 });
      await expect(ledger.addNote({ ...asTriage, text: 'late' })).rejects.toMatchObject({
        code: 'epoch_stale',
      });
    });
  });
}
