import { describe, expect, it } from 'vitest';
import { problemsOf } from '../../../src/audit/index.js';
import type { ChangeOwnerCommand, LedgerStore, OfferRow, Resolution } from '../../../src/ledger/index.js';
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
  ref,
  start,
  type TestClock,
  TRIAGE,
} from './fixtures.js';

const ANN = `person:ann@${TRIAGE}`;
const BOB = `person:bob@${TRIAGE}`;
const CAROL = `person:carol@${BILLING}`;
const TOMBSTONE = '{"code":"withdrawn"}';

const takeover = (over: Partial<ChangeOwnerCommand> = {}): ChangeOwnerCommand => ({
  ref: ref(),
  change: 'takeover',
  epoch: 3,
  actor: ANN,
  to: ANN,
  reason: 'nobody answers',
  voids: null,
  ...over,
});
const voiding = ({ key }: OfferRow) => ({ key, answer: TOMBSTONE });
const refused = (code: string, data: object = {}) => ({ code, data: expect.objectContaining(data) });

/** The chain verifies, and replays to what the ledger holds. */
async function expectSound(ledger: LedgerStore): Promise<void> {
  expect(problemsOf(await ledger.snapshot(ref()))).toEqual([]);
}

async function unknownEffect(ledger: LedgerStore, clock: TestClock, key = 'r1'): Promise<void> {
  await ledger.startEffect({ ...asTriage, ...start(key) });
  clock.advance(30_000);
}

const found: Resolution = {
  by: ANN,
  reason: 'found in the payments console',
  minutes: 12,
  records: [{ name: 'payments', id: 're_881' }],
};

export function peopleSuite(open: OpenLedger): void {
  describe('a person', () => {
    it('[R-062][R-137] takes a case at epoch + 1, and the former owner is stale from then on', async () => {
      const { ledger, row } = await ledgerWithCase(open);
      expect(await ledger.changeOwner(takeover())).toEqual({ ...row, owner: ANN, epoch: 4 });
      expect(await ledger.getCase(ref())).toEqual({ ...row, owner: ANN, epoch: 4 });

      const stale = refused('epoch_stale', { presented: 3, current: 4 });
      await expect(ledger.addNote({ ...asTriage, text: 'late' })).rejects.toMatchObject(stale);
      await expect(ledger.startEffect({ ...asTriage, ...start('r1') })).rejects.toMatchObject(stale);
      const now = { ...asTriage, epoch: 4 };
      await expect(ledger.addNote({ ...now, text: 'x' })).rejects.toMatchObject(refused('not_owner'));
      await ledger.addNote({ ...now, writer: ANN, text: 'looking into it' });
      expect((await ledger.closeCase({ ...now, writer: ANN })).status).toBe('closed');
      await expectSound(ledger);
    });

    it('[R-062][R-137] says in one audit entry who took it, from whom and why', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.changeOwner(takeover({ reason: '  nobody answers  ' }));
      expect((await ledger.readAudit(ref())).slice(1)).toMatchObject([
        {
          type: 'owner_changed',
          actor: ANN,
          epochBefore: 3,
          epochAfter: 4,
          rule: 'H2',
          data: { change: 'takeover', from: TRIAGE, to: ANN, reason: 'nobody answers', superseded: [] },
        },
      ]);
    });

    it('[R-137] voids the open offer with it, so that its late acceptance is refused', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const offer = await offered(ledger, clock);
      await ledger.changeOwner(takeover({ voids: voiding(offer) }));
      expect(await ledger.getOffer(offer.key)).toMatchObject({ state: 'withdrawn', closedAt: clock.in(0) });
      const decision = { verdict: 'tombstone', code: 'withdrawn', answer: TOMBSTONE, digest: null };
      expect(await ledger.findDecision(offer.key)).toMatchObject(decision);
      expect(await ledger.accept(acceptance(clock))).toMatchObject({ outcome: 'decided', decision });
      expect(await ledger.getCase(ref())).toMatchObject({ owner: ANN, epoch: 4 });
      expect((await ledger.readAudit(ref())).map(({ type, actor }) => [type, actor]).slice(3)).toEqual([
        ['offer_closed', ANN],
        ['owner_changed', ANN],
        ['delivery_repeated', TRIAGE],
      ]);
      await expectSound(ledger);
    });

    it('[R-137] does not take a case whose open offer is another than the one looked at', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      const before = await ledger.snapshot(ref());
      const other = { key: { ...key, attempt: 2 }, answer: TOMBSTONE };
      for (const voids of [null, other]) {
        await expect(ledger.changeOwner(takeover({ voids }))).rejects.toMatchObject({ code: 'offer_open' });
      }
      expect(await ledger.snapshot(ref())).toEqual(before);
      await ledger.voidOffer({ key, writer: TRIAGE, reason: 'x', expired: false, answer: TOMBSTONE });
      // One that was closed meanwhile is in nobody's way.
      await ledger.changeOwner(takeover({ voids: { key, answer: TOMBSTONE } }));
      await expectSound(ledger);
    });

    it('[R-137] supersedes open work, and leaves constraints, hops and the budget of handovers as they are', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      const before = await ledger.getCase(ref());
      const [item] = await ledger.listWork('acme', {});
      const taken = takeover({ epoch: 4, actor: CAROL, to: CAROL });
      expect(await ledger.changeOwner(taken)).toEqual({ ...before, owner: CAROL, epoch: 5 });
      expect(await ledger.listWork('acme', {})).toMatchObject([{ id: item?.id, state: 'superseded' }]);
      const settle = { ...asBilling, workId: item?.id ?? '', state: 'done', result: null } as const;
      await expect(ledger.settleWork(settle)).rejects.toMatchObject(refused('epoch_stale'));
      await expectSound(ledger);
    });

    it('[R-137] takes nothing while an effect may be happening, and inherits it once it is unknown', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      const flying = refused('effect_in_flight', { key: 'r1' });
      await expect(ledger.changeOwner(takeover())).rejects.toMatchObject(flying);
      expect((await ledger.readAudit(ref())).at(-1)).toMatchObject({
        type: 'write_refused',
        actor: ANN,
        rule: 'effect_in_flight',
        data: { write: 'takeover' },
      });
      clock.advance(30_000);
      await ledger.changeOwner(takeover());
      const late = { ...asTriage, key: 'r1', state: 'done', outcome: 're_1' } as const;
      await expect(ledger.settleEffect(late)).rejects.toMatchObject(refused('epoch_stale'));
      expect((await ledger.readAudit(ref())).at(-1)).toMatchObject({
        type: 'effect_reported',
        actor: TRIAGE,
      });
      const settled = await ledger.settleEffect({ ...late, writer: ANN, epoch: 4 });
      expect(settled).toMatchObject({ state: 'done', outcome: 're_1', owner: TRIAGE, epoch: 3 });
      await expectSound(ledger);
    });

    it("[R-133] is let by the owner's node and by the case's root, and by no other", async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await expect(ledger.changeOwner(takeover({ actor: CAROL, to: CAROL }))).rejects.toMatchObject(
        refused('not_owner', { owner: TRIAGE }),
      );
      await handedOver(ledger, clock);
      await expect(ledger.changeOwner(takeover({ epoch: 4 }))).rejects.toMatchObject(refused('not_owner'));
      expect(await ledger.getCase(ref())).toMatchObject({ owner: BILLING, epoch: 4 });
      const atRoot = `person:dan@${ref().root}`;
      await ledger.changeOwner(takeover({ epoch: 4, actor: atRoot, to: atRoot }));
      expect(await ledger.getCase(ref())).toMatchObject({ owner: atRoot, epoch: 5 });
      await expectSound(ledger);
    });

    it('[R-133] acts only through the node that their name names', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.changeOwner(takeover());
      const elsewhere = `person:ann@${BILLING}`;
      const now = { ...asTriage, epoch: 4 };
      for (const writer of [elsewhere, TRIAGE, BOB, 'person:ann']) {
        await expect(ledger.addNote({ ...now, writer, text: 'x' }), writer).rejects.toMatchObject(
          refused('not_owner', { owner: ANN }),
        );
      }
      expect(await ledger.listNotes(ref())).toEqual([]);
    });

    it('[R-137] passes a case to another person and gives it back, at an epoch each', async () => {
      const { ledger, row } = await ledgerWithCase(open);
      await ledger.changeOwner(takeover());
      const pass = { ...takeover({ change: 'reassignment', epoch: 4 }), to: BOB };
      for (const actor of [BOB, `person:eve@${TRIAGE}`]) {
        await expect(
          ledger.changeOwner({ ...pass, actor, to: `person:zoe@${TRIAGE}` }),
        ).rejects.toMatchObject(refused('not_owner', { owner: ANN, current: 4 }));
      }
      expect(await ledger.changeOwner(pass)).toMatchObject({ owner: BOB, epoch: 5 });
      const back = takeover({ change: 'return', epoch: 5, actor: BOB, to: TRIAGE });
      expect(await ledger.changeOwner(back)).toEqual({ ...row, epoch: 6 });
      await expect(ledger.changeOwner(back)).rejects.toMatchObject(refused('epoch_stale', { current: 6 }));
      await ledger.addNote({ ...asTriage, epoch: 6, text: 'mine again' });
      await expectSound(ledger);
    });

    it('[R-137] takes a case from a colleague who is away', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.changeOwner(takeover());
      await ledger.changeOwner(takeover({ epoch: 4, actor: BOB, to: BOB }));
      const again = takeover({ epoch: 5, actor: BOB, to: BOB });
      await expect(ledger.changeOwner(again)).rejects.toMatchObject({ code: 'usage' });
      const note = { ...asTriage, writer: ANN, epoch: 4, text: 'late' };
      await expect(ledger.addNote(note)).rejects.toMatchObject(refused('epoch_stale'));
      await expectSound(ledger);
    });

    it('[R-098] is given a case by its agent, which owns it until then', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const offer = await offered(ledger, clock);
      const escalation = takeover({ change: 'escalation', actor: TRIAGE, to: ANN, voids: voiding(offer) });
      await expect(ledger.changeOwner({ ...escalation, actor: BILLING, to: CAROL })).rejects.toMatchObject(
        refused('not_owner'),
      );
      expect(await ledger.changeOwner(escalation)).toMatchObject({ owner: ANN, epoch: 4 });
      await expectSound(ledger);
    });

    it('[R-062] takes a case or comes too late for it: of two at one moment, one does', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const offer = await offered(ledger, clock);
      const voids = voiding(offer);
      const results = await Promise.allSettled([
        ledger.changeOwner(takeover({ voids })),
        ledger.accept(acceptance(clock)),
        ledger.changeOwner(takeover({ actor: BOB, to: BOB, voids })),
      ]);
      const won = results.filter(
        (result) =>
          result.status === 'fulfilled' && ('owner' in result.value || result.value.outcome === 'accepted'),
      );
      expect(won).toHaveLength(1);
      expect(await ledger.getCase(ref())).toMatchObject({ epoch: 4 });
      await expectSound(ledger);
    });

    it('goes where a change of owner leads, and nowhere else', async () => {
      const { ledger } = await ledgerWithCase(open);
      const before = await ledger.snapshot(ref());
      for (const wrong of [
        { to: BOB },
        { to: TRIAGE },
        { actor: TRIAGE, to: TRIAGE },
        { actor: 'person:Ann@x', to: 'person:Ann@x' },
        { actor: 'person:@x', to: 'person:@x' },
        { change: 'escalation', actor: TRIAGE, to: CAROL },
        { change: 'escalation', actor: ANN, to: BOB },
        { change: 'reassignment', to: CAROL },
        { change: 'reassignment', to: TRIAGE },
        { change: 'reassignment', actor: TRIAGE, to: ANN },
        { change: 'return', to: LEGAL },
        { change: 'return', to: BOB },
        { change: 'return', actor: TRIAGE, to: TRIAGE },
        { reason: '' },
        { reason: ' \t ' },
        { reason: 'two\nlines' },
        { reason: 'x'.repeat(501) },
      ] as Partial<ChangeOwnerCommand>[]) {
        await expect(ledger.changeOwner(takeover(wrong)), JSON.stringify(wrong)).rejects.toMatchObject({
          code: 'usage',
        });
      }
      expect(await ledger.snapshot(ref())).toEqual(before);
    });

    it('takes no case that is closed, unknown, quarantined or at another epoch', async () => {
      const { ledger } = await ledgerWithCase(open);
      const at = (over: Partial<ChangeOwnerCommand>) => ledger.changeOwner(takeover(over));
      await expect(at({ epoch: 2 })).rejects.toMatchObject(refused('epoch_stale', { current: 3 }));
      await expect(at({ epoch: 4 })).rejects.toMatchObject(refused('epoch_ahead', { current: 3 }));
      await expect(at({ ref: ref('CASE-9') })).rejects.toMatchObject(refused('case_unknown'));
      await ledger.closeCase(asTriage);
      await expect(at({})).rejects.toMatchObject(refused('case_closed'));
      const reason = 'epoch_regressed';
      await ledger.quarantine({ ref: ref(), reason, witnessed: { epoch: 7 }, found: { epoch: 3 } });
      await expect(at({})).rejects.toMatchObject({ code: 'case_quarantined' });
    });

    it('takes no case of a kind whose owner moves in two ledgers', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.putKind('acme', { ...KIND, kind: 'dispute', mode: 'separate' });
      const case2 = ref('CASE-2');
      await ledger.openCase({ ref: case2, kind: 'dispute', owner: TRIAGE, epoch: 3, actor: TRIAGE });
      const before = await ledger.snapshot(case2);
      await expect(ledger.changeOwner(takeover({ ref: case2 }))).rejects.toMatchObject({ code: 'usage' });
      expect(await ledger.snapshot(case2)).toEqual(before);
      const quarantine = { reason: 'epoch_regressed', witnessed: { epoch: 7 } } as const;
      await ledger.quarantine({ ref: case2, ...quarantine, found: { epoch: 3 } });
      const resolution = { by: ANN, reason: 'x' };
      const recovery = { ref: case2, resolution, epoch: 3, above: 7, quarantine, voids: null };
      await expect(ledger.recoverCase(recovery)).rejects.toMatchObject({ code: 'usage' });
      expect(await ledger.listQuarantined('acme')).toHaveLength(1);
    });

    it('settles an unknown effect for the owner, and what they say of it stands in the audit', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await unknownEffect(ledger, clock);
      const settle = { ...asTriage, key: 'r1', state: 'done', outcome: 're_881' } as const;
      expect(await ledger.settleEffect({ ...settle, resolution: found })).toMatchObject({ state: 'done' });
      expect((await ledger.readAudit(ref())).at(-1)).toMatchObject({
        type: 'effect_settled',
        actor: TRIAGE,
        data: { key: 'r1', state: 'done', outcome: 're_881', ...found },
      });
      expect(await ledger.listAttention('acme')).toEqual([]);
      // The same again changes nothing; another word comes too late.
      await ledger.settleEffect({ ...settle, resolution: found });
      const failed = { ...settle, state: 'failed', outcome: null, resolution: found } as const;
      await expect(ledger.settleEffect(failed)).rejects.toMatchObject(refused('effect_settled'));
      await expectSound(ledger);
    });

    it('does not settle what may still be happening, and says no more than fits in the audit', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      const settle = (over: Partial<Resolution>, state: 'failed' | 'unknown' = 'failed') =>
        ledger.settleEffect({
          ...asTriage,
          ...{ key: 'r1', state, outcome: null },
          resolution: { ...found, ...over },
        });
      await expect(settle({})).rejects.toMatchObject(refused('effect_in_flight', { key: 'r1' }));
      clock.advance(30_000);
      const many = Array.from({ length: 21 }, (_, index) => ({ name: 'payments', id: `re_${index}` }));
      for (const wrong of [
        { by: TRIAGE.replace('triage', 'other') },
        { by: CAROL },
        { reason: '' },
        { minutes: -1 },
        { minutes: 1.5 },
        { minutes: 100_001 },
        { records: many },
        { records: [{ name: 'Payments', id: 're_1' }] },
        { records: [{ name: 'payments', id: 'a sentence about it' }] },
      ]) {
        await expect(settle(wrong), JSON.stringify(wrong)).rejects.toMatchObject({ code: 'usage' });
      }
      await expect(settle({}, 'unknown')).rejects.toMatchObject({ code: 'usage' });
      expect(await settle({})).toMatchObject({ state: 'failed' });
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      await expectSound(ledger);
    });
  });
}
