import { describe, expect, it } from 'vitest';
import { compareWithLedger, replay, verifyChain } from '../../../src/audit/index.js';
import type { AnswerCommand, DeferCommand, LedgerStore } from '../../../src/ledger/index.js';
import {
  acceptance,
  BILLING,
  type DeliveryOver,
  delivery,
  LEGAL,
  ledgerWithCase,
  type OpenLedger,
  offered,
  ref,
  rejection,
  type TestClock,
  TRIAGE,
} from './fixtures.js';

const LEASE_MS = 1000;
const PUSH = {
  pushId: 'push_1',
  configId: 'c1',
  agent: BILLING,
  url: 'https://hook.example/',
  origin: 'https://hook.example',
  token: null,
  scheme: null,
  credentials: null,
};
const WITHDRAWN = '{"code":"withdrawn","final":true}';

const taskIn = (state: string, clock: TestClock, id: string, message?: object) => {
  const status = { state, timestamp: clock.in(0), ...(message && { message }) };
  const task = { id, contextId: `ctx-${id}`, status };
  return {
    id,
    contextId: task.contextId,
    state,
    statusAt: status.timestamp,
    task: JSON.stringify(task),
  };
};

function deferral(
  clock: TestClock,
  over: DeliveryOver & Partial<DeferCommand> = {},
  taskId = 'task_1',
): DeferCommand {
  const { text, sender, caseId, epoch, attempt, tenant, ...rest } = over;
  const given = { text, sender, caseId, epoch, attempt, tenant };
  const known = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return {
    ...delivery(known),
    kind: 'refund',
    toAgent: BILLING,
    contract: 'refund-dispute/1',
    message: '{"messageId":"m"}',
    acceptBy: clock.in(60_000),
    state: 'deciding',
    task: taskIn('TASK_STATE_SUBMITTED', clock, taskId),
    ...rest,
  };
}

const asking = (clock: TestClock, n: number, over: Partial<DeferCommand> = {}): DeferCommand =>
  deferral(clock, {
    state: 'asked',
    question: { n, question: `Question ${n}?` },
    task: taskIn('TASK_STATE_INPUT_REQUIRED', clock, 'task_1', { messageId: `q${n}` }),
    ...over,
  });

const answering = (n: number, over: Partial<AnswerCommand> = {}): AnswerCommand => {
  const { digest: _, ...rest } = delivery();
  const fields = { n, answer: '{"facts":[]}', digest: `${n}`.repeat(64), message: `{"messageId":"a${n}"}` };
  return { ...rest, ...fields, loggable: { reason: 'duplicate_charge' }, ...over };
};

/** With a task as it would be answered. */
const accepting = (clock: TestClock) =>
  acceptance(clock, { task: taskIn('TASK_STATE_COMPLETED', clock, 'task_other') });
const rejecting = (clock: TestClock) =>
  rejection(clock, 'offer_expired', { task: taskIn('TASK_STATE_REJECTED', clock, 'task_other') });
const withdrawing = () => {
  const { digest: _, ...rest } = delivery();
  return { ...rest, answer: WITHDRAWN, toAgent: BILLING };
};

async function taskState(ledger: LedgerStore, id = 'task_1') {
  const row = await ledger.getTask('acme', TRIAGE, id);
  if (row === null) throw new Error('no task');
  expect(JSON.parse(row.task).status.state).toBe(row.state);
  return { state: row.state, version: row.version, task: JSON.parse(row.task) };
}

/** As with a configuration that came with the message. */
async function listen(ledger: LedgerStore): Promise<void> {
  await ledger.addPush({
    tenant: 'acme',
    peer: TRIAGE,
    taskId: 'task_1',
    push: PUSH,
    event: 'of a plain task',
  });
}

async function agrees(ledger: LedgerStore): Promise<void> {
  const snapshot = await ledger.snapshot(ref());
  verifyChain(snapshot.audit);
  expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);
}

export function pendingSuite(open: OpenLedger): void {
  describe('an offer that is not decided at once', () => {
    it('[R-093] is stored with its task, once, and the same bytes find it', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const command = deferral(clock);
      const first = await ledger.deferOffer(command);
      expect(first).toMatchObject({
        outcome: 'stored',
        pending: { state: 'deciding', taskId: 'task_1', rev: 1 },
      });
      const again = await ledger.deferOffer(deferral(clock, {}, 'task_2'));
      expect(again).toEqual({ ...first, outcome: 'stands' });
      expect(await ledger.getTask('acme', TRIAGE, 'task_2')).toBeNull();
      expect(await ledger.deferOffer(deferral(clock, { text: 'other' }))).toEqual({ outcome: 'conflict' });
      expect(await ledger.accept(acceptance(clock, { text: 'other' }))).toEqual({ outcome: 'conflict' });
      expect(await taskState(ledger)).toMatchObject({ state: 'TASK_STATE_SUBMITTED', version: 1 });
      const stored = first.outcome === 'stored' ? first.pending : expect.fail('not stored');
      expect(await ledger.getPending(command.key)).toEqual(stored);
      expect(await ledger.findPending('acme', 'task_1')).toEqual(stored);
      expect(await ledger.findPending('zeta', 'task_1')).toBeNull();
      expect(await ledger.listPending('acme', { toAgent: BILLING })).toEqual([stored]);
      expect(await ledger.listPending('acme', { toAgent: BILLING, state: 'asked' })).toEqual([]);
      expect(await ledger.listPending('acme', { toAgent: LEGAL })).toEqual([]);
      const standing = await ledger.offerStanding(command.key, ref(), 'refund');
      expect(standing).toMatchObject({ decision: null, pending: { rev: 1 } });
      expect((await ledger.getCase(ref()))?.epoch).toBe(3);
      await agrees(ledger);
    });

    it.each([
      ['acceptance', 'COMPLETED', (clock: TestClock) => (l: LedgerStore) => l.accept(accepting(clock))],
      ['rejection', 'REJECTED', (clock: TestClock) => (l: LedgerStore) => l.reject(rejecting(clock))],
      ['withdrawal', 'CANCELED', () => (l: LedgerStore) => l.withdraw(withdrawing())],
    ] as const)(
      '[R-093] ends with its %s, which ends its task in the same transaction',
      async (_, state, decide) => {
        const { ledger, clock } = await ledgerWithCase(open);
        await ledger.deferOffer(deferral(clock));
        await listen(ledger);
        clock.advance(1000);
        await decide(clock)(ledger);
        const decision = await ledger.findDecision(deferral(clock).key);
        expect(decision?.taskId).toBe('task_1');
        const task = await taskState(ledger);
        expect(task).toMatchObject({
          state: `TASK_STATE_${state}`,
          version: 2,
          task: { id: 'task_1', contextId: 'ctx-task_1' },
        });
        expect(await ledger.getTask('acme', TRIAGE, 'task_other')).toBeNull();
        expect(await ledger.getPending(deferral(clock).key)).toMatchObject({
          state: 'decided',
          message: null,
        });
        expect(await ledger.listPending('acme', { toAgent: BILLING })).toEqual([]);
        const told = await Promise.all([1, 2].map((seq) => ledger.getNotification('acme', 'push_1', seq)));
        expect(told.map((one) => JSON.parse(one?.body ?? '{}').task?.status.state)).toEqual([
          'TASK_STATE_SUBMITTED',
          `TASK_STATE_${state}`,
        ]);
        expect(await ledger.deferOffer(deferral(clock))).toMatchObject({ outcome: 'decided' });
        await agrees(ledger);
      },
    );

    it('[R-093] is shown to people where it waits for one, or its check takes long, until it is decided or too late', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const acceptBy = clock.in(120_000);
      await ledger.deferOffer(deferral(clock, { acceptBy }));
      const { handoffId, attempt, sender } = delivery().key;
      const data = { handoffId, attempt, sender, toAgent: BILLING, contract: 'refund-dispute/1', acceptBy };
      const item = { what: 'decision_waiting', ref: ref(), since: clock.in(0) };
      const items = () => ledger.listAttention('acme');
      expect(await items()).toEqual([]);
      clock.advance(61_000);
      expect(await items()).toEqual([{ ...item, data: { ...data, state: 'deciding' } }]);
      await ledger.deferOffer(deferral(clock, { acceptBy, state: 'waiting' }));
      expect(await items()).toEqual([{ ...item, data: { ...data, state: 'waiting' } }]);
      expect(await ledger.listAttention('other')).toEqual([]);
      clock.advance(60_000);
      expect(await items()).toEqual([]);
    });

    it('[R-093] is shown to people no more once it is decided, and not while its sender is asked', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const acceptBy = clock.in(600_000);
      await ledger.deferOffer(deferral(clock, { acceptBy, state: 'waiting' }));
      expect(await ledger.listAttention('acme')).toMatchObject([{ what: 'decision_waiting' }]);
      await ledger.reject(rejecting(clock));
      expect(await ledger.listAttention('acme')).toEqual([]);

      const other = await ledgerWithCase(open);
      await other.ledger.deferOffer(asking(other.clock, 1, { acceptBy: other.clock.in(600_000) }));
      other.clock.advance(120_000);
      expect(await other.ledger.listAttention('acme')).toEqual([]);
    });

    it('[R-095][R-099] is withdrawn with the offer of the sender, where both use the ledger', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      await ledger.deferOffer(deferral(clock));
      await ledger.voidOffer({ key, writer: TRIAGE, reason: 'test', expired: false, answer: WITHDRAWN });
      const { state, task } = await taskState(ledger);
      expect(state).toBe('TASK_STATE_CANCELED');
      expect(task.artifacts[0].parts[0].data).toEqual(JSON.parse(WITHDRAWN));
      expect(await ledger.accept(accepting(clock))).toMatchObject({ outcome: 'decided' });
      await agrees(ledger);
    });

    it('ends where a person takes the case over', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      await ledger.deferOffer(deferral(clock));
      const person = `person:ann@${TRIAGE}`;
      const change = { ref: ref(), epoch: 3, change: 'takeover', actor: person, to: person } as const;
      await ledger.changeOwner({ ...change, reason: 'urgent', voids: { key, answer: WITHDRAWN } });
      expect(await taskState(ledger)).toMatchObject({ state: 'TASK_STATE_CANCELED' });
      await agrees(ledger);
    });

    it('[R-053] is rejected where its evidence is revoked', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const { key } = await offered(ledger, clock);
      await ledger.deferOffer(deferral(clock));
      const answer = '{"code":"evidence_revoked","final":true}';
      const revoked = {
        key,
        artifactId: 'art_1',
        version: 1,
        sha256: 'a'.repeat(64),
        reason: 'wrong',
        answer,
      };
      await ledger.recordRevocation(revoked);
      const { state, task } = await taskState(ledger);
      expect(state).toBe('TASK_STATE_REJECTED');
      expect(task.artifacts[0].parts[0].data).toEqual(JSON.parse(answer));
      expect(await ledger.accept(accepting(clock))).toMatchObject({ outcome: 'decided' });
      await agrees(ledger);
    });

    it('is kept: neither it nor its end can be taken back', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.deferOffer(deferral(clock));
      await ledger.reject(rejecting(clock));
      const before = await ledger.snapshot(ref());
      expect(await ledger.answerOffer(answering(1))).toMatchObject({ outcome: 'unasked' });
      expect(await ledger.accept(accepting(clock))).toMatchObject({ outcome: 'decided' });
      expect((await ledger.snapshot(ref())).pending).toEqual(before.pending);
    });
  });

  describe('questions about an offer', () => {
    it('[R-093] go to its sender one by one, and the answers to the check', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      expect(await ledger.deferOffer(asking(clock, 1))).toMatchObject({
        outcome: 'stored',
        pending: { state: 'asked', clarifications: [{ n: 1, question: 'Question 1?', answer: null }] },
      });
      await listen(ledger);
      expect(await ledger.deferOffer(asking(clock, 2))).toMatchObject({ outcome: 'stands' });
      expect(await ledger.answerOffer(answering(2))).toMatchObject({ outcome: 'unasked' });
      const answered = await ledger.answerOffer(answering(1));
      expect(answered).toMatchObject({
        outcome: 'stored',
        pending: { state: 'deciding', clarifications: [{ n: 1, answer: '{"facts":[]}' }] },
      });
      expect(await taskState(ledger)).toMatchObject({
        state: 'TASK_STATE_WORKING',
        task: { history: [{ messageId: 'q1' }, { messageId: 'a1' }] },
      });
      expect(await ledger.answerOffer(answering(1))).toMatchObject({ outcome: 'same' });
      expect(await ledger.answerOffer(answering(1, { digest: '9'.repeat(64) }))).toMatchObject({
        outcome: 'conflict',
      });
      expect(await ledger.deferOffer(asking(clock, 3))).toMatchObject({ outcome: 'stands' });
      expect(await ledger.deferOffer(asking(clock, 2))).toMatchObject({ outcome: 'stored' });
      await ledger.answerOffer(answering(2));
      await ledger.accept(accepting(clock));
      expect(await ledger.answerOffer(answering(1))).toMatchObject({ outcome: 'same' });
      const seqs = [1, 2, 3, 4, 5, 6];
      const told = await Promise.all(seqs.map((seq) => ledger.getNotification('acme', 'push_1', seq)));
      expect(told.map((one) => Object.keys(JSON.parse(one?.body ?? '{}'))[0])).toEqual([
        ...['task', 'statusUpdate', 'statusUpdate', 'statusUpdate', 'task'],
        undefined,
      ]);
      const { audit, decisions } = await ledger.snapshot(ref());
      expect(decisions).toHaveLength(1);
      expect(
        audit.filter(({ type }) => type.startsWith('question')).map(({ type, data }) => [type, data?.n]),
      ).toEqual([
        ['question_asked', 1],
        ['question_answered', 1],
        ['question_asked', 2],
        ['question_answered', 2],
      ]);
      expect(JSON.stringify(audit)).not.toContain('Question 1?');
      expect(audit.find(({ type }) => type === 'question_answered')?.data).toMatchObject({
        loggable: { reason: 'duplicate_charge' },
      });
      await agrees(ledger);
    });

    it('[R-097] are not answered once the offer has expired', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.deferOffer(asking(clock, 1));
      clock.advance(60_001);
      expect(await ledger.answerOffer(answering(1))).toMatchObject({ outcome: 'expired' });
      expect(await ledger.reject(rejecting(clock))).toMatchObject({ outcome: 'stored' });
      expect(await taskState(ledger)).toMatchObject({ state: 'TASK_STATE_REJECTED' });
    });

    it('[R-087] are answered by the sender alone', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.deferOffer(asking(clock, 1));
      const foreign = { ...answering(1), principal: delivery({ sender: LEGAL }).principal };
      await expect(ledger.answerOffer(foreign)).rejects.toMatchObject({ code: 'usage' });
      const { key } = delivery({ sender: LEGAL });
      expect(await ledger.answerOffer({ ...foreign, key })).toMatchObject({ outcome: 'unasked' });
    });

    it('wait for somebody to decide where the check says so', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.deferOffer(deferral(clock));
      expect(await ledger.deferOffer(deferral(clock, { state: 'waiting' }))).toMatchObject({
        outcome: 'stored',
        pending: { state: 'waiting' },
      });
      const by = `person:ann@${BILLING}`;
      expect(await ledger.accept({ ...accepting(clock), decidedBy: by })).toMatchObject({
        outcome: 'accepted',
      });
      const { audit } = await ledger.snapshot(ref());
      expect(audit.at(-1)).toMatchObject({ type: 'handoff_accepted', data: { decidedBy: by } });
      await agrees(ledger);
    });
  });

  describe('claims of offers that are to be checked', () => {
    const claim = (holder: string) => ({ tenant: 'acme', agent: BILLING, holder, limit: 10 });
    const keys = async (ledger: LedgerStore, holder: string) =>
      (await ledger.claimPending(claim(holder))).map(({ taskId }) => taskId);

    it('go to one living process, and to another once that is gone', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      for (const holder of ['p1', 'p2']) await ledger.heartbeat(holder, LEASE_MS);
      await ledger.deferOffer(deferral(clock, { holder: 'p1' }));
      await ledger.deferOffer(deferral(clock, { caseId: 'CASE-9' }, 'task_9'));
      expect(await keys(ledger, 'p2')).toEqual(['task_9']);
      expect(await keys(ledger, 'p1')).toEqual([]);
      expect(await keys(ledger, 'nobody')).toEqual([]);
      clock.advance(LEASE_MS + 1);
      await ledger.heartbeat('p3', LEASE_MS);
      expect(await keys(ledger, 'p3')).toEqual(['task_1', 'task_9']);
      expect(await ledger.claimPending({ ...claim('p3'), agent: LEGAL })).toEqual([]);
      await ledger.release('p3');
      await ledger.heartbeat('p4', LEASE_MS);
      const only = { ...claim('p4'), key: deferral(clock).key };
      expect((await ledger.claimPending(only)).map(({ taskId }) => taskId)).toEqual(['task_1']);
      await agrees(ledger);
    });

    it('[R-097] find what waits for others only past its accept_by', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.deferOffer(asking(clock, 1));
      await ledger.heartbeat('p1', 120_000);
      expect(await keys(ledger, 'p1')).toEqual([]);
      clock.advance(60_001);
      expect(await keys(ledger, 'p1')).toEqual(['task_1']);
    });

    it('leave a decision of somebody else alone', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.heartbeat('p1', LEASE_MS);
      await ledger.heartbeat('p2', LEASE_MS);
      await ledger.deferOffer(deferral(clock));
      const [, decided] = await Promise.all([
        keys(ledger, 'p1'),
        ledger.reject(rejecting(clock)),
        keys(ledger, 'p2'),
      ]);
      expect(decided).toMatchObject({ outcome: 'stored' });
      expect(await keys(ledger, 'p1')).toEqual([]);
      expect(await ledger.getPending(deferral(clock).key)).toMatchObject({ state: 'decided', holder: null });
    });
  });
}
