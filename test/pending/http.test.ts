import { describe, expect, it, vi } from 'vitest';
import { accept, clarify, decideLater, type OfferView, reject } from '../../src/index.js';
import type { Message, Task } from '../../src/protocol/index.js';
import {
  answerTo,
  bodyOf,
  CHANNEL,
  expectDecidedOnce,
  type Pair,
  partOf,
  QUERY_WAIT,
  startPair,
} from './support.js';

const NOW = { returnImmediately: true };

/** What a check waits for, until it is opened. */
function gate<T>() {
  let open: (value: T) => void = () => undefined;
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

const stateNow = async (pair: Pair, { id }: Task) => (await pair.ask('GetTask', { id })).status.state;
const becomes = (pair: Pair, task: Task, state: string) =>
  expect.poll(() => stateNow(pair, task), QUERY_WAIT).toBe(`TASK_STATE_${state}`);

/** The events of a stream, as it ends. */
async function eventsOf(response: Response) {
  const text = await response.text();
  const lines = text.split('\n').filter((line) => line.startsWith('data:'));
  return lines.map((line) => JSON.parse(line.slice('data:'.length)).result);
}

const query = async (pair: Pair, verb: 'handoff.query' | 'handoff.withdraw' = 'handoff.query') => {
  const data = { verb, root: pair.triage.url, handoff_id: 'CASE-1:2', attempt: 1 };
  const part = { data, mediaType: 'application/vnd.holdfast.control.v1+json' };
  const { message } = (await pair.ask('SendMessage', {
    message: { messageId: 'q', role: 'ROLE_USER', parts: [part] },
  })) as unknown as { message: Message };
  return message.parts[0]?.data as Record<string, unknown>;
};

describe.each(['shared', 'separate'] as const)('in %s mode, an offer that is not decided at once', (mode) => {
  it('[R-093] is answered at once where its sender asks for that, and decided behind', async () => {
    const pair = await startPair(mode);
    const { open, opened } = gate<ReturnType<typeof accept>>();
    pair.handler = { check: () => opened };
    const offer = pair.offer();
    const task = await pair.send(offer, NOW);
    expect(task.status.state).toBe('TASK_STATE_SUBMITTED');
    expect(await pair.send(offer, NOW)).toEqual(task);
    expect((await pair.ask('ListTasks', {})) as unknown).toMatchObject({ tasks: [{ id: task.id }] });
    expect(await query(pair)).toMatchObject({ state: 'deciding', task_id: task.id });
    const [other] = await Promise.all([
      pair.send(pair.offer('CASE-1', { goal: 'Other bytes' })),
      vi.waitUntil(async () => (await pair.billing.listPending()).length === 1),
    ]);
    expect(partOf(other)).toMatchObject({ code: 'duplicate_conflict', final: false });
    const joined = pair.send(offer);
    open(accept());
    expect(await joined).toMatchObject({ id: task.id, status: { state: 'TASK_STATE_COMPLETED' } });
    expect(await pair.send(offer)).toEqual(await joined);
    expect(await query(pair)).toMatchObject({
      state: 'decided',
      decision: { verdict: 'accepted', task_id: task.id },
    });
    await expectDecidedOnce(pair, 'accepted');
    expect((await pair.billing.ledger.getCase(pair.ref()))?.owner).toBe(pair.billing.url);
  });

  it('[R-093] is followed by a stream, by subscribers and by a push configuration that came with it', async () => {
    const pair = await startPair(mode);
    const { open, opened } = gate<ReturnType<typeof accept>>();
    pair.handler = { check: () => opened };
    const stream = pair.call('SendStreamingMessage', { message: pair.offer() });
    const id = await vi.waitUntil(async () => (await pair.billing.listPending())[0]?.taskId, QUERY_WAIT);
    const subscribed = pair.call('SubscribeToTask', { id });
    const other = pair.call('SubscribeToTask', { id });
    await Promise.all([subscribed, other]);
    open(accept());
    for (const response of [await stream, await subscribed, await other]) {
      const events = await eventsOf(response);
      expect(events[0].task).toMatchObject({ id, status: { state: 'TASK_STATE_SUBMITTED' } });
      expect(events[1].artifactUpdate.artifact.artifactId).toBe('receipt');
      expect(events[2].statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
      expect(events).toHaveLength(3);
    }
    const again = await pair.call('SubscribeToTask', { id });
    expect((await bodyOf(again)).error.code).toBe(-32004);
    const push = { url: `${pair.triage.url}/push/x`, token: 'one' };
    pair.handler = { check: () => decideLater() };
    const task = await pair.send(pair.offer('CASE-2'), { ...NOW, taskPushNotificationConfig: push });
    await pair.billing.rejectPending({
      key: (await pair.billing.listPending())[0]?.key ?? expect.fail(),
      person: 'ann',
      code: 'records_disagree',
      reason: 'not here',
    });
    const told = () => pair.billing.ledger.listNotifications('default', {});
    expect((await told()).map(({ taskId, seq }) => [taskId, seq])).toEqual([
      [task.id, 1],
      [task.id, 2],
    ]);
  });

  it('[R-093] may be asked about, and is decided by the answers', async () => {
    const pair = await startPair(mode);
    const seen: OfferView['clarifications'][] = [];
    let works: unknown;
    pair.handler = {
      check({ clarifications }) {
        seen.push(clarifications);
        return clarifications.length < 2
          ? clarify(`Which channel? (${clarifications.length + 1})`)
          : accept();
      },
      async work(work) {
        works = await work.clarifications();
        await work.done();
      },
    };
    const offer = pair.offer();
    const task = await pair.send(offer);
    expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    const identity = { root: pair.triage.url, case_id: 'CASE-1', handoff_id: 'CASE-1:2', attempt: 1 };
    expect(task.status.message?.parts).toEqual([
      { text: 'Which channel? (1)', mediaType: 'text/plain' },
      {
        data: { ...identity, n: 1, question: 'Which channel? (1)' },
        mediaType: 'application/vnd.holdfast.question.v1+json',
      },
    ]);
    expect(await pair.send(offer)).toEqual(task);
    expect(await query(pair)).toMatchObject({
      state: 'deciding',
      question: { n: 1, question: 'Which channel? (1)' },
    });
    expect((await pair.billing.ledger.getCase(pair.ref()))?.owner).not.toBe(pair.billing.url);

    const refused = async (message: Message) => {
      const { error } = await bodyOf(await pair.call('SendMessage', { message }));
      return [error.data[0]?.reason, error.data[1]?.fieldViolations?.[0]?.field];
    };
    const bad = [
      [{ key: 'password', value: 'x', source: 'crm', verified: true }],
      [{ ...CHANNEL, value: 'phone' }],
      [{ ...CHANNEL, source: 'customer' }],
    ];
    expect(await Promise.all(bad.map((facts) => refused(answerTo(pair, task, { facts }))))).toEqual([
      ['ANSWER_INVALID', 'facts.password'],
      ['ANSWER_INVALID', 'facts.channel.value'],
      ['ANSWER_INVALID', 'facts.channel.source'],
    ]);
    expect(await refused(answerTo(pair, task, { n: 2 }))).toEqual(['ANSWER_INVALID', 'n']);

    const asked = await pair.send(answerTo(pair, task, { text: 'On the web.' }));
    expect(asked).toMatchObject({ id: task.id, status: { state: 'TASK_STATE_INPUT_REQUIRED' } });
    expect(await pair.send(answerTo(pair, task, { text: 'On the web.' }))).toEqual(asked);
    expect((await refused(answerTo(pair, task, { text: 'In the shop.' })))[0]).toBe('DUPLICATE_CONFLICT');
    expect(await pair.send(answerTo(pair, task, { n: 2 }))).toMatchObject({
      id: task.id,
      status: { state: 'TASK_STATE_COMPLETED' },
    });
    const first = {
      question: 'Which channel? (1)',
      answer: { facts: { channel: 'web' }, text: 'On the web.' },
    };
    const second = { question: 'Which channel? (2)', answer: { facts: { channel: 'web' }, text: null } };
    expect(seen).toEqual([[], [first], [first, second]]);
    await expect.poll(() => works, QUERY_WAIT).toEqual([first, second]);
    await expectDecidedOnce(pair, 'accepted');
    const audit = JSON.stringify(await pair.billing.ledger.readAudit(pair.ref()));
    expect(audit).not.toContain('On the web.');
    expect(audit).toContain('"channel":"web"');
  });

  it('[R-093] is rejected where its check asks more than the contract allows', async () => {
    const pair = await startPair(mode);
    pair.handler = { check: () => clarify('And now?') };
    const task = await pair.send(pair.offer());
    await pair.send(answerTo(pair, task));
    const rejected = await pair.send(answerTo(pair, task, { n: 2 }));
    expect(partOf(rejected)).toMatchObject({ code: 'contract_refused', final: true });
    await expectDecidedOnce(pair, 'rejected');
  });

  it('[R-097] is refused past its accept_by though nobody asks again, and stays refused', async () => {
    const pair = await startPair(mode);
    pair.handler = { check: () => clarify('Which channel?') };
    const offer = pair.offer('CASE-1', { acceptInMs: 60_000 });
    const asked = await pair.send(offer);
    pair.handler = { check: () => decideLater() };
    const waits = await pair.send(pair.offer('CASE-2', { acceptInMs: 60_000 }), NOW);
    await vi.waitUntil(
      async () => (await pair.billing.listPending({ state: 'waiting' })).length === 1,
      QUERY_WAIT,
    );
    pair.advance(60_001);
    for (const task of [asked, waits]) {
      await becomes(pair, task, 'REJECTED');
      expect(partOf(await pair.ask('GetTask', { id: task.id }))).toMatchObject({
        code: 'offer_expired',
        final: true,
      });
    }
    // Long after any clock could still differ.
    pair.advance(400 * 86_400_000);
    expect(partOf(await pair.send(offer))).toMatchObject({ code: 'offer_expired', final: true });
    const { error } = await bodyOf(await pair.call('SendMessage', { message: answerTo(pair, asked) }));
    expect(error.data[0]?.reason).toBe('ANSWER_INVALID');
    for (const caseId of ['CASE-1', 'CASE-2']) await expectDecidedOnce(pair, 'rejected', caseId);
  });

  it('[R-095][R-099] is withdrawn by CancelTask, of its sender alone, and stays withdrawn', async () => {
    const pair = await startPair(mode);
    pair.handler = { check: () => decideLater() };
    const offer = pair.offer();
    const task = await pair.send(offer, NOW);
    const canceled = await pair.ask('CancelTask', { id: task.id });
    expect(canceled).toMatchObject({ id: task.id, status: { state: 'TASK_STATE_CANCELED' } });
    expect(partOf(canceled)).toMatchObject({ code: 'withdrawn', final: true, handoff_id: 'CASE-1:2' });
    pair.advance(400 * 86_400_000);
    for (const late of [offer, pair.offer('CASE-1', { goal: 'Other bytes' })]) {
      expect(await pair.send(late)).toMatchObject({ id: task.id, status: { state: 'TASK_STATE_CANCELED' } });
    }
    await expectDecidedOnce(pair, 'tombstone');
    const foreign = await bodyOf(await pair.call('CancelTask', { id: task.id }, pair.billing));
    expect(foreign.error).toBeDefined();
  });

  it('[R-099] is not withdrawn by a CancelTask that comes too late', async () => {
    const pair = await startPair(mode);
    const { open, opened } = gate<ReturnType<typeof accept>>();
    pair.handler = { check: () => opened };
    const task = await pair.send(pair.offer(), NOW);
    open(accept());
    await becomes(pair, task, 'COMPLETED');
    const { error } = await bodyOf(await pair.call('CancelTask', { id: task.id }));
    expect(error.code).toBe(-32002);
    await expectDecidedOnce(pair, 'accepted');
  });

  it('[R-095] is withdrawn by a control message, with the task in the same state', async () => {
    const pair = await startPair(mode);
    pair.handler = { check: () => clarify('Which channel?') };
    const task = await pair.send(pair.offer());
    expect(await query(pair, 'handoff.withdraw')).toMatchObject({
      state: 'decided',
      decision: { verdict: 'withdrawn', task_id: task.id },
    });
    expect(await stateNow(pair, task)).toBe('TASK_STATE_CANCELED');
    await expectDecidedOnce(pair, 'tombstone');
  });

  it('[R-093] waits for a person, whose acceptance goes through every check', async () => {
    const pair = await startPair(mode);
    pair.handler = { check: () => decideLater() };
    const [first, second] = [await pair.send(pair.offer(), NOW), await pair.send(pair.offer('CASE-2'), NOW)];
    await vi.waitUntil(
      async () => (await pair.billing.listPending({ state: 'waiting' })).length === 2,
      QUERY_WAIT,
    );
    expect(await stateNow(pair, first)).toBe('TASK_STATE_SUBMITTED');
    const [one, two] = await pair.billing.listPending();
    const key = one?.key ?? expect.fail();
    expect(await pair.billing.acceptPending({ key, person: 'ann' })).toMatchObject({
      verdict: 'accepted',
      taskId: first.id,
    });
    expect(await stateNow(pair, first)).toBe('TASK_STATE_COMPLETED');
    const audit = await pair.billing.ledger.readAudit(pair.ref());
    expect(audit.find(({ type }) => type === 'handoff_accepted')?.data).toMatchObject({
      decidedBy: `person:ann@${pair.billing.url}`,
    });
    await expect(pair.billing.acceptPending({ key, person: 'ann' })).rejects.toMatchObject({
      code: 'offer_decided',
    });
    const by = { key: two?.key ?? expect.fail(), person: 'ann' };
    for (const [code, reason, refusal] of [
      ['no_such_code', 'no', 'usage'],
      ['too_generous', 'write to a.b@example.com', 'personal_data'],
    ] as const) {
      await expect(pair.billing.rejectPending({ ...by, code, reason })).rejects.toMatchObject({
        code: refusal,
      });
    }
    await pair.billing.rejectPending({ ...by, code: 'too_generous', reason: 'More than we may.' });
    expect(partOf(await pair.ask('GetTask', { id: second.id }))).toMatchObject({ code: 'too_generous' });
    await expectDecidedOnce(pair, 'accepted');
    await expectDecidedOnce(pair, 'rejected', 'CASE-2');
  });

  it('[R-083] is decided once by two processes, and by a person at the same moment', async () => {
    const pair = await startPair(mode);
    pair.handler = { check: () => decideLater() };
    const other = await pair.another();
    for (const caseId of ['CASE-1', 'CASE-2', 'CASE-3']) {
      await pair.send(pair.offer(caseId), NOW);
      const [waiting] = await vi.waitUntil(async () => {
        const found = await pair.billing.listPending({ state: 'waiting' });
        return found.length > 0 && found;
      }, QUERY_WAIT);
      const key = waiting?.key ?? expect.fail();
      const results = await Promise.allSettled([
        pair.billing.acceptPending({ key, person: 'ann' }),
        other.acceptPending({ key, person: 'bob' }),
        other.rejectPending({ key, person: 'bob', code: 'too_generous', reason: 'no' }),
      ]);
      const won = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value.verdict] : []));
      expect(new Set(won).size).toBe(1);
      await expectDecidedOnce(pair, won[0] ?? '', caseId);
    }
  });
});

describe('a blocking call', () => {
  it('[R-092] that is decided at once stores nothing besides its decision', async () => {
    const pair = await startPair('shared');
    const task = await pair.send(pair.offer());
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    pair.handler = { check: () => reject('too_generous', 'no') };
    expect(partOf(await pair.send(pair.offer('CASE-2')))).toMatchObject({ code: 'too_generous' });
    for (const caseId of ['CASE-1', 'CASE-2']) {
      expect((await pair.billing.ledger.snapshot(pair.ref(caseId))).pending).toEqual([]);
    }
  });

  it('[R-097] past accept_by is refused, and the refusal stored', async () => {
    const pair = await startPair('shared');
    const offer = pair.offer('CASE-1', { acceptInMs: -1 });
    expect(partOf(await pair.send(offer, NOW))).toMatchObject({ code: 'offer_expired', final: true });
    await expectDecidedOnce(pair, 'rejected');
  });
});
