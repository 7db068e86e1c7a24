import { describe, expect, it } from 'vitest';
import { compareWithLedger, replay, verifyChain } from '../../../src/audit/index.js';
import type { WithdrawCommand } from '../../../src/ledger/index.js';
import {
  acceptance,
  BILLING,
  type DeliveryOver,
  delivery,
  handedOver,
  LEGAL,
  ledgerWithCase,
  type OpenLedger,
  offered,
  ref,
  rejection,
} from './fixtures.js';

const ANSWER = '{"code":"withdrawn"}';

function withdrawal(over: DeliveryOver = {}): WithdrawCommand {
  const { digest: _, ...rest } = delivery(over);
  return { ...rest, answer: ANSWER, toAgent: BILLING };
}

export function withdrawalSuite(open: OpenLedger): void {
  describe('withdrawals', () => {
    it('[R-095] keep out whatever arrives later under the key, where the sender has written no offer', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const command = withdrawal();
      const stored = await ledger.withdraw(command);
      expect(stored).toEqual({
        outcome: 'stored',
        decision: {
          key: command.key,
          caseId: 'CASE-1',
          verdict: 'tombstone',
          code: 'withdrawn',
          digest: null,
          answer: ANSWER,
          taskId: null,
          epochBefore: 3,
          epochAfter: 3,
          decidedAt: clock.in(0),
        },
      });
      for (const text of ['please refund', 'any bytes']) {
        expect(await ledger.accept(acceptance(clock, { text }))).toEqual({ ...stored, outcome: 'decided' });
      }
      expect(await ledger.reject(rejection(clock, 'fact_missing'))).toMatchObject({ outcome: 'decided' });
      expect(await ledger.accept(acceptance(clock, { attempt: 2 }))).toMatchObject({ outcome: 'accepted' });
    });

    it('do nothing twice, and nothing to a decision', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const first = await ledger.withdraw(withdrawal());
      clock.advance(1000);
      const before = await ledger.snapshot(ref());
      expect(await ledger.withdraw({ ...withdrawal(), answer: '{}' })).toEqual({
        ...first,
        outcome: 'decided',
      });
      expect(await ledger.snapshot(ref())).toEqual(before);
      await ledger.reject(rejection(clock, 'evidence_empty', { attempt: 2 }));
      expect(await ledger.withdraw(withdrawal({ attempt: 2 }))).toMatchObject({
        outcome: 'decided',
        decision: { verdict: 'rejected', code: 'evidence_empty' },
      });
    });

    it('[R-099] lose to an acceptance that came first', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      const before = await ledger.snapshot(ref());
      expect(await ledger.withdraw(withdrawal())).toEqual({
        outcome: 'decided',
        decision: before.decisions[0],
      });
      expect(await ledger.snapshot(ref())).toEqual(before);
    });

    it('[R-099] and an acceptance at the same moment have one winner', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      for (let attempt = 1; attempt <= 6; attempt++) {
        const competing = [
          () => ledger.withdraw(withdrawal({ attempt })),
          () => ledger.reject(rejection(clock, 'fact_missing', { attempt })),
        ];
        if (attempt % 2 === 0) competing.reverse();
        const results = await Promise.all(competing.map((compete) => compete()));
        expect(results.map(({ outcome }) => outcome).sort()).toEqual(['decided', 'stored']);
      }
      expect((await ledger.snapshot(ref())).decisions).toHaveLength(6);
    });

    it('need no case, and are told by an audit that replays', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.withdraw(withdrawal());
      await ledger.withdraw(withdrawal({ caseId: 'CASE-9' }));
      for (const id of ['CASE-1', 'CASE-9']) {
        const snapshot = await ledger.snapshot(ref(id));
        expect(snapshot.decisions).toHaveLength(1);
        expect(snapshot.audit.at(-1)).toMatchObject({
          type: 'handoff_withdrawn',
          attempt: 1,
          data: { tokenId: 'jti-1' },
        });
        verifyChain(snapshot.audit);
        expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);
      }
    });

    it('[R-087] are for the keys of whoever withdraws, and of no offer of this ledger', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const foreign = { ...withdrawal(), principal: delivery({ sender: LEGAL }).principal };
      await expect(ledger.withdraw(foreign)).rejects.toMatchObject({ code: 'usage' });
      await offered(ledger, clock);
      await expect(ledger.withdraw(withdrawal())).rejects.toMatchObject({ code: 'usage' });
      expect((await ledger.snapshot(ref())).decisions).toEqual([]);
    });
  });

  describe('decisions of one sender on a case', () => {
    it('[R-087][R-090] are read newest first, as many as are asked for, and none by others', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      for (const attempt of [1, 2, 3]) await ledger.withdraw(withdrawal({ attempt }));
      await ledger.withdraw(withdrawal({ sender: LEGAL }));
      await ledger.reject(rejection(clock, 'case_unknown', { caseId: 'CASE-9' }));
      const { key } = delivery();
      const attempts = async (caseId: string, sender: string, limit = 10) =>
        (await ledger.listDecisions(ref(caseId), sender, limit)).map(
          (one) => `${one.key.attempt} ${one.verdict}`,
        );
      const tombstones = ['3 tombstone', '2 tombstone', '1 tombstone'];
      expect(await attempts('CASE-1', key.sender)).toEqual(tombstones);
      expect(await attempts('CASE-1', key.sender, 2)).toEqual(tombstones.slice(0, 2));
      expect(await attempts('CASE-1', LEGAL)).toEqual(['1 tombstone']);
      expect(await attempts('CASE-9', key.sender)).toEqual(['1 rejected']);
      expect(await ledger.listDecisions(ref('CASE-1', 'other'), key.sender, 10)).toEqual([]);
    });
  });
}
