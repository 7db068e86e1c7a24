import { describe, expect, it } from 'vitest';
import { problemsOf } from '../../../src/audit/index.js';
import { sha256Hex } from '../../../src/core/index.js';
import type { LedgerStore, Quarantine, RecoverCaseCommand } from '../../../src/ledger/index.js';
import {
  acceptance,
  asTriage,
  BILLING,
  handedOver,
  KIND,
  ledgerWithCase,
  type OpenLedger,
  offered,
  openCase,
  ref,
  start,
  TRIAGE,
} from './fixtures.js';

const ANN = `person:ann@${TRIAGE}`;
const AT_ROOT = `person:dan@${ref().root}`;

const REASON = 'restored from the backup of last night';
const regressed: Omit<Quarantine, 'at'> = {
  ref: ref(),
  reason: 'epoch_regressed',
  witnessed: { epoch: 7, seq: 40, hash: 'ab'.repeat(32), receipt: 'a.b.c' },
  found: { epoch: 3, seq: 1 },
};
type Over = Partial<RecoverCaseCommand> & { readonly actor?: string; readonly reason?: string };

const recovery = ({ actor = ANN, reason = REASON, ...over }: Over = {}): RecoverCaseCommand => ({
  ref: ref(),
  resolution: { by: actor, reason },
  epoch: 3,
  above: 7,
  quarantine: regressed,
  voids: null,
  ...over,
});

async function expectSound(ledger: LedgerStore, caseRef = ref()): Promise<void> {
  expect(problemsOf(await ledger.snapshot(caseRef))).toEqual([]);
}

/** Whether it is closed to writes as before, with nothing written. */
async function expectQuarantined(ledger: LedgerStore): Promise<void> {
  expect(await ledger.listQuarantined('acme')).toHaveLength(1);
  await expect(ledger.addNote({ ...asTriage, text: 'x' })).rejects.toMatchObject({
    code: 'case_quarantined',
  });
}

export function recoverySuite(open: OpenLedger): void {
  describe('a recovery', () => {
    it('[R-062][R-073] goes on above the epoch that was witnessed, with the person as owner', async () => {
      const { ledger, row } = await ledgerWithCase(open);
      await ledger.quarantine(regressed);
      const records = [{ name: 'backups', id: '2026-02-28' }];
      const resolution = { by: ANN, reason: REASON, minutes: 90, records };
      const recovered = await ledger.recoverCase(recovery({ resolution }));
      expect(recovered).toEqual({ ...row, owner: ANN, epoch: 8 });
      expect(await ledger.getCase(ref())).toEqual(recovered);
      expect(await ledger.listQuarantined('acme')).toEqual([]);
      expect((await ledger.readAudit(ref())).at(-1)).toMatchObject({
        type: 'case_recovered',
        actor: ANN,
        epochBefore: 3,
        epochAfter: 8,
        rule: 'H2',
        data: {
          from: TRIAGE,
          to: ANN,
          by: ANN,
          reason: REASON,
          minutes: 90,
          records,
          superseded: [],
          lost: {
            reason: 'epoch_regressed',
            epoch: 7,
            seq: 40,
            hash: 'ab'.repeat(32),
            receiptDigest: sha256Hex('a.b.c'),
          },
        },
      });
      for (const epoch of [3, 4, 7]) {
        for (const writer of [TRIAGE, BILLING, ANN]) {
          await expect(ledger.addNote({ ...asTriage, writer, epoch, text: 'x' })).rejects.toMatchObject({
            code: 'epoch_stale',
          });
        }
      }
      const mine = { ...asTriage, writer: ANN, epoch: 8 };
      await ledger.addNote({ ...mine, text: 'the refund of that night is confirmed' });
      await ledger.changeOwner({
        ...{ ref: ref(), change: 'return', epoch: 8, actor: ANN, to: TRIAGE },
        ...{ reason: 'recovered', voids: null },
      });
      await ledger.addNote({ ...asTriage, epoch: 9, text: 'goes on' });
      await expectSound(ledger);
    });

    it('voids the offer and supersedes the work that the older state has open', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      await ledger.quarantine(regressed);
      await expect(ledger.recoverCase(recovery())).rejects.toMatchObject({ code: 'offer_open' });
      await expectQuarantined(ledger);
      await ledger.recoverCase(recovery({ voids: { key, answer: '{}' } }));
      expect(await ledger.getOffer(key)).toMatchObject({ state: 'withdrawn' });
      expect(await ledger.accept(acceptance(clock))).toMatchObject({
        outcome: 'decided',
        decision: { verdict: 'tombstone' },
      });
      await expectSound(ledger);

      await openCase(ledger, 'CASE-2');
      const other = ref('CASE-2');
      await offered(ledger, clock, { ref: other });
      await ledger.accept(acceptance(clock, { caseId: 'CASE-2' }));
      await ledger.quarantine({ ...regressed, ref: other });
      const actor = `person:carol@${BILLING}`;
      await ledger.recoverCase(recovery({ ref: other, epoch: 4, actor }));
      expect(await ledger.listWork('acme', { caseId: 'CASE-2' })).toMatchObject([{ state: 'superseded' }]);
      await expectSound(ledger, other);
    });

    it('[R-133] is let where a takeover is: at the node of the owner, and at the root', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      await ledger.quarantine(regressed);
      await expect(ledger.recoverCase(recovery({ epoch: 4 }))).rejects.toMatchObject({ code: 'not_owner' });
      await expectQuarantined(ledger);
      expect(await ledger.recoverCase(recovery({ epoch: 4, actor: AT_ROOT }))).toMatchObject({ epoch: 8 });
      await expectSound(ledger);
    });

    it('leaves the owner who recovers it the owner, at the higher epoch', async () => {
      const { ledger } = await ledgerWithCase(open);
      const take = { ref: ref(), change: 'takeover', epoch: 3, actor: ANN, to: ANN } as const;
      await ledger.changeOwner({ ...take, reason: 'x', voids: null });
      await ledger.quarantine(regressed);
      expect(await ledger.recoverCase(recovery({ epoch: 4 }))).toMatchObject({ owner: ANN, epoch: 8 });
      await expectSound(ledger);
    });

    it('counts from where the case is, where it was only the chain that lost something', async () => {
      const { ledger } = await ledgerWithCase(open, 9);
      const forked = { ...regressed, reason: 'audit_forked', witnessed: { seq: 4, hash: 'ab' } } as const;
      await ledger.quarantine(forked);
      const command = recovery({ epoch: 9, above: 1, quarantine: forked });
      expect(await ledger.recoverCase(command)).toMatchObject({ owner: ANN, epoch: 10 });
      await expectSound(ledger);
    });

    it('opens a case that is missing anew, at the root, as of the kind that it was', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const gone = ref('CASE-9');
      const missing: Omit<Quarantine, 'at'> = { ...regressed, ref: gone, reason: 'case_missing', found: {} };
      await ledger.quarantine(missing);
      const command = recovery({
        ref: gone,
        epoch: null,
        quarantine: missing,
        actor: AT_ROOT,
        kind: 'refund',
      });
      const { kind: _, ...unnamed } = command;
      for (const [wrong, code] of [
        [{ ...command, resolution: { by: ANN, reason: REASON } }, 'not_owner'],
        [{ ...command, kind: 'other' }, 'kind_unknown'],
        [unnamed, 'usage'],
        [{ ...command, epoch: 3 }, 'epoch_stale'],
      ] as const) {
        await expect(ledger.recoverCase(wrong)).rejects.toMatchObject({ code });
      }
      expect(await ledger.recoverCase(command)).toMatchObject({
        status: 'open',
        owner: AT_ROOT,
        epoch: 8,
        openedAt: clock.in(0),
        tasksLeft: KIND.limits.maxTasks,
      });
      expect(await ledger.listQuarantined('acme')).toEqual([]);
      await expectSound(ledger, gone);
      const audit = await ledger.readAudit(gone);
      expect(audit).toMatchObject([{ seq: 1, type: 'case_recovered', epochAfter: 8 }]);
      const note = { ref: gone, writer: AT_ROOT, epoch: 8, text: 'what is known of it' };
      await ledger.addNote(note);
      await expectSound(ledger, gone);
    });

    it('is refused without a trace where it would not be one', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await expect(ledger.recoverCase(recovery())).rejects.toMatchObject({ code: 'usage' });
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      await ledger.quarantine(regressed);
      const before = await ledger.snapshot(ref());
      await expect(ledger.recoverCase(recovery())).rejects.toMatchObject({ code: 'effect_in_flight' });
      clock.advance(30_000);
      for (const [wrong, code] of [
        [{ above: 6 }, 'usage'],
        [{ above: 0 }, 'usage'],
        [{ above: 7.5 }, 'usage'],
        [{ above: Number.MAX_SAFE_INTEGER }, 'usage'],
        [{ actor: TRIAGE }, 'usage'],
        [{ reason: ' ' }, 'usage'],
        [{ epoch: 2 }, 'epoch_stale'],
        [{ epoch: null }, 'epoch_stale'],
        [{ actor: `person:carol@${BILLING}` }, 'not_owner'],
      ] as const) {
        await expect(ledger.recoverCase(recovery(wrong)), JSON.stringify(wrong)).rejects.toMatchObject({
          code,
        });
      }
      expect((await ledger.readAudit(ref())).length).toBe(before.audit.length);
      await expectQuarantined(ledger);
      await ledger.recoverCase(recovery({ above: 12 }));
      expect(await ledger.getCase(ref())).toMatchObject({ owner: ANN, epoch: 13 });
      await expect(ledger.recoverCase(recovery({ epoch: 13 }))).rejects.toMatchObject({ code: 'usage' });
      await expectSound(ledger);
    });

    it('of two at one moment, one is carried out', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.quarantine(regressed);
      const both = [recovery(), recovery({ actor: AT_ROOT })].map((command) => ledger.recoverCase(command));
      const results = await Promise.allSettled(both);
      expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
      expect(await ledger.getCase(ref())).toMatchObject({ epoch: 8 });
      await expectSound(ledger);
    });

    it('can follow another, where the ledger has lost something again', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.quarantine(regressed);
      await ledger.recoverCase(recovery());
      const again = { ...regressed, witnessed: { epoch: 9, seq: 50, hash: 'cd' } };
      await ledger.quarantine(again);
      await expectQuarantined(ledger);
      const command = recovery({ epoch: 8, above: 9, quarantine: again });
      expect(await ledger.recoverCase(command)).toMatchObject({ owner: ANN, epoch: 10 });
      await expectSound(ledger);
    });
  });
}
