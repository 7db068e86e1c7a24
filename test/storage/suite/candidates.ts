import { describe, expect, it } from 'vitest';
import { compareWithLedger, replay } from '../../../src/audit/index.js';
import type { LedgerStore, PlanStep } from '../../../src/ledger/index.js';
import {
  acceptance,
  asTriage,
  BILLING,
  intend,
  LEGAL,
  ledgerWithCase,
  type OpenLedger,
  offered,
  ref,
  rejection,
  start,
  TRIAGE,
} from './fixtures.js';

const candidate = (agent: string, attempt: number | null, passed: string | null = null) => ({
  agent,
  attempt,
  passed,
});
const plan = (from: number | null, first: number | null, second: number | null): PlanStep => ({
  from,
  candidates: [candidate(BILLING, first), candidate(LEGAL, second)],
  escalateTo: null,
  acceptWithinMs: 60_000,
});
const exhausted = (from: number) => ({
  ref: ref(),
  sender: TRIAGE,
  from,
  candidates: [candidate(BILLING, 1), candidate(LEGAL, 2)],
  state: 'exhausted' as const,
  reason: 'candidates_exhausted',
});

/** What is wrong between the ledger and its audit; nothing. */
async function problems(ledger: LedgerStore): Promise<string[]> {
  const snapshot = await ledger.snapshot(ref());
  return compareWithLedger(replay(snapshot.audit), snapshot);
}

export function candidateSuite(open: OpenLedger): void {
  describe('ordered candidates', () => {
    it('[R-094] are stored with the attempt, and one step is made of each closed attempt', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      expect(await ledger.getPlan(ref())).toBeNull();
      await offered(ledger, clock, { plan: plan(null, 1, null) });
      expect(await ledger.listPlans('acme', TRIAGE, 10)).toMatchObject([
        { ref: ref(), epoch: 3, attempt: 1, state: 'active', candidates: plan(null, 1, null).candidates },
      ]);
      const second = intend(clock, { attempt: 2, toAgent: LEGAL, plan: plan(1, 1, 2) });
      await expect(ledger.intendOffer(second)).rejects.toMatchObject({ code: 'offer_open' });
      await ledger.reject(rejection(clock, 'records_disagree'));
      const made = await Promise.allSettled([ledger.intendOffer(second), ledger.intendOffer(second)]);
      expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect(await ledger.getPlan(ref())).toMatchObject({ attempt: 2, candidates: plan(1, 1, 2).candidates });
      await ledger.reject(rejection(clock, 'records_disagree', { attempt: 2 }));
      const stale = intend(clock, { attempt: 3, plan: { ...plan(1, 3, 2), from: 1 } });
      await expect(ledger.intendOffer(stale)).rejects.toMatchObject({ code: 'plan_ended' });
      expect(await problems(ledger)).toEqual([]);
    });

    it('[R-098] wait for a person when nobody is left, until the case goes on', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock, { plan: plan(null, 1, null) });
      await ledger.reject(rejection(clock, 'records_disagree'));
      await ledger.intendOffer(intend(clock, { attempt: 2, toAgent: LEGAL, plan: plan(1, 1, 2) }));
      await ledger.reject(rejection(clock, 'records_disagree', { attempt: 2 }));
      expect(await ledger.setPlan(exhausted(1))).toMatchObject({ state: 'active', attempt: 2 });
      expect(await ledger.setPlan(exhausted(2))).toMatchObject({ state: 'exhausted' });
      expect(await ledger.setPlan({ ...exhausted(2), state: 'ended' })).toMatchObject({ state: 'exhausted' });
      expect(await ledger.listPlans('acme', TRIAGE, 10)).toEqual([]);
      expect(await ledger.listAttention('acme')).toMatchObject([
        {
          what: 'candidates_exhausted',
          ref: ref(),
          data: { attempt: 2, reason: 'candidates_exhausted', owner: TRIAGE },
        },
      ]);
      expect(await ledger.getCase(ref())).toMatchObject({ owner: TRIAGE, epoch: 3 });
      expect(await problems(ledger)).toEqual([]);
      await ledger.intendOffer(intend(clock, { attempt: 3 }));
      expect(await ledger.listAttention('acme')).toEqual([]);
      expect(await ledger.listAttention('other')).toEqual([]);
    });

    it('do not outlive another hand on the plan, and rest while the case is quarantined', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock, { plan: plan(null, 1, null) });
      await ledger.quarantine({ ref: ref(), reason: 'case_missing', witnessed: { epoch: 4 }, found: {} });
      expect(await ledger.listPlans('acme', TRIAGE, 10)).toEqual([]);
      await expect(ledger.setPlan({ ...exhausted(1), state: 'ended' })).rejects.toMatchObject({
        code: 'case_quarantined',
      });
    });
  });

  describe('offers that are not decided at once', () => {
    const note = (key: Parameters<LedgerStore['getOffer']>[0], n?: number, text = 'Which payment?') => ({
      key,
      taskId: 'task_1',
      state: n === undefined ? 'TASK_STATE_WORKING' : 'TASK_STATE_INPUT_REQUIRED',
      question: n === undefined ? null : { n, text },
    });
    const answer = (key: Parameters<LedgerStore['getOffer']>[0], n: number, message = '{"n":1}') => ({
      key,
      n,
      message,
      facts: ['invoice_id'],
    });

    it('[R-093] keep the task at the receiver as it was read last, until they are decided', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      expect(await ledger.getSentTask(key)).toBeNull();
      expect(await ledger.noteTask(note(key))).toMatchObject({ key, peer: BILLING, taskId: 'task_1' });
      const entries = (await ledger.readAudit(ref())).length;
      await ledger.noteTask(note(key));
      expect(await ledger.readAudit(ref())).toHaveLength(entries);
      expect(await ledger.findSentTasks('acme', TRIAGE, 'task_1')).toMatchObject([{ key }]);
      expect(await ledger.findSentTasks('acme', BILLING, 'task_1')).toEqual([]);
      await ledger.accept(acceptance(clock));
      expect(await ledger.noteTask(note(key, 1))).toMatchObject({
        state: 'TASK_STATE_WORKING',
        question: null,
      });
      expect(await problems(ledger)).toEqual([]);
    });

    it('show what is asked until it is answered, once for each question', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      await expect(ledger.answerQuestion(answer(key, 1))).rejects.toMatchObject({ code: 'question_unknown' });
      await ledger.noteTask(note(key, 1));
      expect(await ledger.listAttention('acme')).toMatchObject([
        { what: 'question_open', data: { n: 1, question: 'Which payment?', peer: BILLING, owner: TRIAGE } },
      ]);
      expect(await ledger.answerQuestion(answer(key, 1))).toMatchObject({
        answer: { n: 1, message: '{"n":1}' },
      });
      expect(await ledger.answerQuestion(answer(key, 1))).toMatchObject({ answer: { n: 1 } });
      await expect(ledger.answerQuestion(answer(key, 1, '{"n":2}'))).rejects.toMatchObject({
        code: 'duplicate_conflict',
      });
      expect(await ledger.listAttention('acme')).toEqual([]);
      await ledger.noteTask(note(key, 2, 'And when?'));
      // A task that was read before, and arrives after.
      await ledger.noteTask(note(key, 1));
      expect(await ledger.getSentTask(key)).toMatchObject({ question: { n: 2 }, answer: { n: 1 } });
      expect(await ledger.listAttention('acme')).toMatchObject([{ what: 'question_open', data: { n: 2 } }]);
      await ledger.answerQuestion(answer(key, 2, 'tomorrow'));
      expect(await ledger.listAttention('acme')).toEqual([]);
      // What was asked before is lost there: the answer to it is none to this.
      await ledger.noteTask(note(key, 2, 'To whom?'));
      expect(await ledger.getSentTask(key)).toMatchObject({ question: { text: 'To whom?' }, answer: null });
      expect(await ledger.listAttention('acme')).toMatchObject([{ what: 'question_open', data: { n: 2 } }]);
      expect(await problems(ledger)).toEqual([]);
      await ledger.reject(rejection(clock, 'records_disagree'));
      expect(await ledger.listAttention('acme')).toEqual([]);
      await expect(ledger.answerQuestion(answer(key, 2))).rejects.toMatchObject({ code: 'offer_decided' });
      await ledger.startEffect({ ...asTriage, ...start('refund-1') });
    });
  });
}
