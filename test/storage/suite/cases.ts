import { describe, expect, it } from 'vitest';
import { compareWithLedger, replay, verifyChain } from '../../../src/audit/index.js';
import {
  acceptance,
  asBilling,
  asTriage,
  BILLING,
  handedOver,
  KIND,
  LEGAL,
  ledgerWithCase,
  type OpenLedger,
  offered,
  openCase,
  ref,
  start,
  TRIAGE,
} from './fixtures.js';

export function caseSuite(open: OpenLedger): void {
  describe('kinds', () => {
    it('[R-001] lists the kinds with the system of record of each', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.putKind('acme', { ...KIND, kind: 'order', systemOfRecord: 'ERP' });
      await ledger.putKind('other', { ...KIND, kind: 'secret' });
      const kinds = await ledger.listKinds('acme');
      expect(kinds.map(({ kind, systemOfRecord }) => [kind, systemOfRecord])).toEqual([
        ['order', 'ERP'],
        ['refund', 'billing database'],
      ]);
      expect(await ledger.getKind('acme', 'refund')).toEqual(KIND);
      expect(await ledger.getKind('acme', 'secret')).toBeNull();
    });

    it('keeps a definition until it is told to replace it', async () => {
      const { ledger } = await ledgerWithCase(open);
      const other = { ...KIND, systemOfRecord: 'elsewhere' };
      expect(await ledger.putKind('acme', { ...KIND })).toBe('same');
      await expect(ledger.putKind('acme', other)).rejects.toMatchObject({ code: 'kind_conflict' });
      expect(await ledger.getKind('acme', 'refund')).toEqual(KIND);
      expect(await ledger.putKind('acme', other, { replace: true })).toBe('replaced');
      expect(await ledger.getKind('acme', 'refund')).toEqual(other);
      expect(await ledger.putKind('acme', { ...KIND, kind: 'order' })).toBe('created');
    });
  });

  describe('cases', () => {
    it('opens a case with one owner, at epoch 1 or as an audited import', async () => {
      const { ledger, clock, row } = await ledgerWithCase(open);
      expect(row).toEqual({
        ref: ref(),
        kind: 'refund',
        status: 'open',
        owner: TRIAGE,
        epoch: 3,
        openedBy: TRIAGE,
        openedAt: clock.in(0),
        closedAt: null,
        contract: null,
        constraints: { caps: {}, prohibitions: [], operations: null },
        hops: [],
        tasksLeft: 5,
      });
      expect(await ledger.getCase(ref())).toEqual(row);
      await openCase(ledger, 'CASE-2', 1);
      expect((await ledger.readAudit(ref()))[0]).toMatchObject({ type: 'case_imported', epochAfter: 3 });
      expect((await ledger.readAudit(ref('CASE-2')))[0]).toMatchObject({
        type: 'case_opened',
        epochAfter: 1,
      });
    });

    it('refuses a second case of the same name, an unknown kind and what is no case id or epoch', async () => {
      const { ledger } = await ledgerWithCase(open);
      await expect(openCase(ledger, 'CASE-1')).rejects.toMatchObject({ code: 'case_exists' });
      const command = { ref: ref('CASE-2'), kind: 'order', owner: TRIAGE, epoch: 1, actor: TRIAGE };
      await expect(ledger.openCase(command)).rejects.toMatchObject({ code: 'kind_unknown' });
      expect((await ledger.readAudit(ref('CASE-2')))[0]).toMatchObject({ type: 'write_refused' });
      await expect(openCase(ledger, 'CASE:3')).rejects.toMatchObject({ code: 'usage' });
      await expect(openCase(ledger, 'CASE-3', 0)).rejects.toMatchObject({ code: 'usage' });
      await expect(openCase(ledger, 'CASE-3', 1.5)).rejects.toMatchObject({ code: 'usage' });
      expect(await ledger.findCases('acme', 'CASE-3')).toEqual([]);
    });

    it('lists cases newest first, by status, owner and id, within the tenant', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await openCase(ledger, 'CASE-2');
      await openCase(ledger, 'CASE-3');
      await ledger.putKind('other', KIND);
      await ledger.openCase({
        ref: { ...ref('CASE-1', 'other'), root: 'https://other.example' },
        kind: 'refund',
        owner: TRIAGE,
        epoch: 1,
        actor: TRIAGE,
      });
      await handedOver(ledger, clock);
      await ledger.closeCase({ ...asTriage, ref: ref('CASE-2') });
      const ids = (rows: { ref: { caseId: string } }[]) => rows.map((row) => row.ref.caseId);
      expect(ids(await ledger.listCases('acme'))).toEqual(['CASE-3', 'CASE-2', 'CASE-1']);
      expect(ids(await ledger.listCases('acme', { limit: 1 }))).toEqual(['CASE-3']);
      expect(ids(await ledger.listCases('acme', { status: 'closed' }))).toEqual(['CASE-2']);
      expect(ids(await ledger.listCases('acme', { owner: BILLING }))).toEqual(['CASE-1']);
      expect(ids(await ledger.listCases('acme', { owner: TRIAGE, status: 'open' }))).toEqual(['CASE-3']);
      expect(await ledger.findCases('acme', 'CASE-1')).toHaveLength(1);
      expect(await ledger.findCases('nobody', 'CASE-1')).toEqual([]);
    });

    it('closes a case for good, and only when nothing is out', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      await expect(ledger.closeCase(asTriage)).rejects.toMatchObject({
        code: 'case_busy',
        data: { offers: 0, workItems: 0, effects: 1 },
      });
      clock.advance(30_000);
      await expect(ledger.closeCase(asTriage)).rejects.toMatchObject({ code: 'case_busy' });
      await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'failed', outcome: null });
      await offered(ledger, clock);
      await expect(ledger.closeCase(asTriage)).rejects.toMatchObject({ data: { offers: 1 } });
      const accepted = await ledger.accept(acceptance(clock));
      await expect(ledger.closeCase(asBilling)).rejects.toMatchObject({ data: { workItems: 1 } });
      const workId = accepted.outcome === 'accepted' ? accepted.work.id : '';
      await ledger.settleWork({ ...asBilling, workId, state: 'done', result: null });
      expect(await ledger.closeCase(asBilling)).toMatchObject({ status: 'closed', closedAt: clock.in(0) });
      expect(await ledger.getCase(ref())).toMatchObject({ status: 'closed' });
      await expect(ledger.closeCase(asBilling)).rejects.toMatchObject({ code: 'case_closed' });
      await expect(ledger.addNote({ ...asBilling, text: 'x' })).rejects.toMatchObject({
        code: 'case_closed',
      });
      await expect(ledger.addNote({ ...asTriage, text: 'x' })).rejects.toMatchObject({ code: 'epoch_stale' });
    });
  });

  describe('fence', () => {
    it('[R-075][R-061][R-165] refuses every write of the old owner once the new one has accepted', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      const before = await ledger.snapshot(ref());
      const stale = {
        code: 'epoch_stale',
        message: 'stale epoch 3, current 4',
        data: { presented: 3, current: 4 },
      };
      const writes = [
        () => ledger.addNote({ ...asTriage, text: 'late' }),
        () => ledger.startEffect({ ...asTriage, ...start('r1') }),
        () => ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: null }),
        () => ledger.settleWork({ ...asTriage, workId: 'w', state: 'done', result: null }),
        () => ledger.closeCase(asTriage),
        () => offered(ledger, clock, { attempt: 2 }),
      ];
      for (const write of writes) await expect(write()).rejects.toMatchObject(stale);
      const { audit, ...after } = await ledger.snapshot(ref());
      expect({ ...after, audit: before.audit }).toEqual(before);
      const refusals = audit.slice(before.audit.length);
      expect(refusals).toHaveLength(writes.length);
      for (const entry of refusals) {
        expect(entry).toMatchObject({
          type: 'write_refused',
          actor: TRIAGE,
          rule: 'epoch_stale',
          data: { presented: 3, current: 4 },
        });
      }
    });

    it('[R-061] lets the sender act on until the acceptance', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      await expect(ledger.addNote({ ...asTriage, text: 'still mine' })).resolves.toMatchObject({ epoch: 3 });
    });

    it('[R-076][R-166] refuses the current epoch by anyone but the owner', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      for (const writer of [TRIAGE, LEGAL, `${BILLING}/`]) {
        await expect(ledger.addNote({ ...asBilling, writer, text: 'x' })).rejects.toMatchObject({
          code: 'not_owner',
          message: `The case is owned by ${BILLING}, at epoch 4.`,
          data: { presented: 4, current: 4, owner: BILLING },
        });
      }
      await expect(
        ledger.startEffect({ ...asBilling, writer: TRIAGE, ...start('r1') }),
      ).rejects.toMatchObject({
        code: 'not_owner',
      });
      expect(await ledger.listNotes(ref())).toEqual([]);
    });

    it('[R-077][R-165] refuses the receiver at either epoch while its acceptance is not recorded', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      await expect(ledger.startEffect({ ...asBilling, ...start('r1') })).rejects.toMatchObject({
        code: 'epoch_ahead',
      });
      await expect(ledger.startEffect({ ...asBilling, epoch: 3, ...start('r1') })).rejects.toMatchObject({
        code: 'not_owner',
      });
      expect(await ledger.listEffects(ref())).toEqual([]);
      expect(await ledger.listWork('acme', { owner: BILLING })).toEqual([]);
    });

    it('refuses a write to a case that is not there, and says so in the audit', async () => {
      const { ledger } = await ledgerWithCase(open);
      const command = { ...asTriage, ref: ref('CASE-9'), text: 'x' };
      await expect(ledger.addNote(command)).rejects.toMatchObject({ code: 'case_unknown' });
      expect(await ledger.readAudit(ref('CASE-9'))).toMatchObject([{ rule: 'case_unknown' }]);
    });

    it("does not show one tenant's case to another", async () => {
      const { ledger } = await ledgerWithCase(open);
      expect(await ledger.getCase(ref('CASE-1', 'other'))).toBeNull();
      const foreign = { ...asTriage, ref: ref('CASE-1', 'other'), text: 'x' };
      await expect(ledger.addNote(foreign)).rejects.toMatchObject({ code: 'case_unknown' });
    });
  });

  describe('work items', () => {
    it('are settled once, by the owner, and the same again is the same', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      const [item] = await ledger.listWork('acme', { owner: BILLING, state: 'open' });
      const settle = {
        ...asBilling,
        workId: item?.id ?? '',
        state: 'done',
        result: '{"refund":"re_1"}',
      } as const;
      const done = await ledger.settleWork(settle);
      expect(done).toMatchObject({ state: 'done', result: settle.result, settledAt: clock.in(0) });
      const length = (await ledger.readAudit(ref())).length;
      clock.advance(1);
      expect(await ledger.settleWork(settle)).toEqual(done);
      expect(await ledger.readAudit(ref())).toHaveLength(length);
      await expect(ledger.settleWork({ ...settle, state: 'failed' })).rejects.toMatchObject({
        code: 'work_settled',
      });
      await expect(ledger.settleWork({ ...settle, workId: 'work_x' })).rejects.toMatchObject({
        code: 'work_unknown',
      });
      expect(await ledger.getWork('acme', settle.workId)).toEqual(done);
      expect(await ledger.getWork('other', settle.workId)).toBeNull();
      expect(await ledger.listWork('acme', { state: 'open' })).toEqual([]);
      expect(await ledger.listWork('acme', { caseId: 'CASE-1', limit: 1 })).toEqual([done]);
    });
  });

  describe('audit', () => {
    it('[R-153] holds no text of notes, envelopes, results or answers, whole or in part', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const canary = 'call +49 170 5550137';
      await offered(ledger, clock, { text: canary });
      const accepted = await ledger.accept(acceptance(clock, { text: canary, answer: canary }));
      await ledger.addNote({ ...asBilling, text: canary });
      await ledger.startEffect({ ...asBilling, ...start('r1') });
      await ledger.settleEffect({ ...asBilling, key: 'r1', state: 'done', outcome: canary });
      const workId = accepted.outcome === 'accepted' ? accepted.work.id : '';
      await ledger.settleWork({ ...asBilling, workId, state: 'done', result: canary });
      const { key } = await offered(ledger, clock, {
        ...asBilling,
        attempt: 1,
        toAgent: LEGAL,
        text: canary,
      });
      await ledger.voidOffer({ key, writer: BILLING, reason: canary, expired: false, answer: canary });
      await expect(
        ledger.openCase({ ...asTriage, kind: canary, owner: TRIAGE, actor: TRIAGE, importedFrom: canary }),
      ).rejects.toMatchObject({ code: 'case_exists' });
      const audit = JSON.stringify(await ledger.readAudit(ref()));
      for (const word of ['5550137', '+49', 'call']) expect(audit).not.toContain(word);
      expect(audit).toContain('INV-77');
    });

    it('agrees with the ledger on texts that no database keeps as they are', async () => {
      const { ledger } = await ledgerWithCase(open);
      const cut = 'half an emoji \ud83d';
      const note = await ledger.addNote({ ...asTriage, text: `${cut}\u0000` });
      expect(await ledger.listNotes(ref())).toEqual([note]);
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      const settle = { ...asTriage, key: 'r1', state: 'done', outcome: cut } as const;
      const done = await ledger.settleEffect(settle);
      expect(await ledger.settleEffect(settle)).toEqual(done);
      expect(await ledger.listEffects(ref())).toEqual([done]);
      const snapshot = await ledger.snapshot(ref());
      expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);
    });

    it('lists the cases that have a chain, and each chain verifies and replays to the ledger', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await openCase(ledger, 'CASE-2');
      await handedOver(ledger, clock);
      await expect(ledger.addNote({ ...asTriage, text: 'late' })).rejects.toMatchObject({
        code: 'epoch_stale',
      });
      const cases = await ledger.listAuditedCases('acme');
      expect(cases).toEqual([ref('CASE-1'), ref('CASE-2')]);
      for (const one of cases) {
        const snapshot = await ledger.snapshot(one);
        expect(verifyChain(snapshot.audit)).toEqual({ ok: true, entries: snapshot.audit.length });
        expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);
      }
      expect(await ledger.listAuditedCases('other')).toEqual([]);
    });
  });

  it('keeps its incarnation, and is unavailable once closed', async () => {
    const { ledger } = await ledgerWithCase(open);
    const incarnation = await ledger.incarnation();
    expect(incarnation).toMatch(/^inc_/);
    expect(await ledger.incarnation()).toBe(incarnation);
    await ledger.close();
    await expect(ledger.getCase(ref())).rejects.toMatchObject({ code: 'ledger_unavailable' });
    await expect(ledger.addNote({ ...asTriage, text: 'x' })).rejects.toMatchObject({
      code: 'ledger_unavailable',
    });
  });
}
