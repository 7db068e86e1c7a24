import { createHmac } from 'node:crypto';
import { TaskState } from '@a2a-js/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { createMemoryLedger } from '../../src/storage/index.js';
import { TestClock } from '../storage/suite/fixtures.js';
import { gate, type Script, scripted } from '../transport/executors.js';
import { offerMessage, PEER, plainMessage, rpc, type startNode, until } from '../transport/support.js';
import { start, stateOf } from '../transport/task-nodes.js';
import {
  answerWith,
  type Hook,
  madeUpNetwork,
  networkTo,
  SECRET,
  type Sending,
  SIGNING_TOKEN,
  startHook,
  startSending,
} from './support.js';

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_WORKING: WORKING } = TaskState;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

type TestNode = Awaited<ReturnType<typeof startNode>>;

let clock: TestClock;
let hook: Hook;

beforeEach(async () => {
  clock = new TestClock();
  hook = await startHook();
});

interface World {
  readonly node: TestNode;
  readonly sending: Sending;
  /** Sends a message with the endpoint in it, and gives the id of its task. */
  ask(config?: object): Promise<string>;
}

async function world(
  script: Script,
  options: { hooks?: Hook[]; network?: ReturnType<typeof networkTo>; timeoutMs?: number } = {},
): Promise<World> {
  const ledger = createMemoryLedger({ clock });
  const network = options.network ?? networkTo(hook, ...(options.hooks ?? []));
  const node = await start({ ledger, network, executor: scripted(script) });
  const { timeoutMs = 2_000 } = options;
  const sending = await startSending({ ledger, agent: node.url, guarded: network, clock, timeoutMs });
  return {
    node,
    sending,
    async ask(config = {}) {
      const configuration = { taskPushNotificationConfig: { url: hook.url, ...config } };
      const { body } = await rpc(node, 'SendMessage', { message: plainMessage(), configuration });
      return body.result.task.id;
    },
  };
}

const done: Script = (turn) => turn.task(COMPLETED);
const threeEvents: Script = (turn) => {
  turn.task();
  turn.artifact('a', 'one');
  turn.status(COMPLETED, 'done');
};
const kinds = ({ received }: Hook) => received.map(({ body }) => Object.keys(JSON.parse(body)).join());
const list = async ({ node }: World) => node.ledger.listNotifications('acme', {});

describe('notifications', () => {
  test('[R-147] tell every event of the task, in order, as a StreamResponse, with what the peer gave to prove us', async () => {
    const it = await world(threeEvents);
    const taskId = await it.ask({
      token: 'token',
      authentication: { scheme: 'Bearer', credentials: 'creds' },
    });
    await it.sending.sweep();
    expect(kinds(hook)).toEqual(['task', 'artifactUpdate', 'statusUpdate']);
    const [first, second, third] = hook.received.map(({ body }) => JSON.parse(body));
    expect(first.task).toMatchObject({ id: taskId, status: { state: 'TASK_STATE_WORKING' } });
    expect(JSON.stringify(first)).not.toContain('urn:holdfast:run');
    expect(second.artifactUpdate).toMatchObject({ taskId, artifact: { artifactId: 'a' } });
    expect(third.statusUpdate).toMatchObject({ taskId, status: { state: 'TASK_STATE_COMPLETED' } });
    for (const { headers } of hook.received) {
      expect(headers).toMatchObject({
        'content-type': 'application/a2a+json',
        authorization: 'Bearer creds',
        'x-a2a-notification-token': 'token',
        'webhook-timestamp': String(Math.floor(clock.now().getTime() / 1000)),
      });
      expect(headers['webhook-signature']).toBeUndefined();
    }
    expect(new Set(hook.received.map(({ headers }) => headers['webhook-id'])).size).toBe(3);
    expect(await list(it)).toEqual([]);
    await it.sending.sweep();
    expect(hook.received).toHaveLength(3);
  });

  test('[R-146] are signed over id, time stamp and body with the secret that the peer gave, which is not sent', async () => {
    const it = await world(done);
    await it.ask({ token: SIGNING_TOKEN });
    await it.sending.sweep();
    const [{ headers, body } = expect.fail('nothing came')] = hook.received;
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    const expected = createHmac('sha256', SECRET).update(signed).digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${expected}`);
    expect(JSON.stringify(headers)).not.toContain('whsec_');
    expect(headers['x-a2a-notification-token']).toBeUndefined();
  });

  test('go to a configuration that was made later from then on, and no more once it is deleted', async () => {
    const doors = [gate(), gate()] as const;
    const it = await world(async (turn) => {
      turn.task();
      await doors[0].wait;
      turn.status(WORKING, 'half');
      await doors[1].wait;
      turn.status(COMPLETED);
    });
    const message = { message: plainMessage(), configuration: { returnImmediately: true } };
    const { id } = (await rpc(it.node, 'SendMessage', message)).body.result.task;
    await rpc(it.node, 'CreateTaskPushNotificationConfig', { taskId: id, id: 'c', url: hook.url });
    doors[0].open();
    await until(async () => (await it.node.ledger.countNotifications('acme')).waiting === 1);
    await it.sending.sweep();
    expect(kinds(hook)).toEqual(['statusUpdate']);
    await rpc(it.node, 'DeleteTaskPushNotificationConfig', { taskId: id, id: 'c' });
    doors[1].open();
    await until(async () => (await stateOf(it.node, id)) === 'TASK_STATE_COMPLETED');
    await it.sending.sweep();
    expect(hook.received).toHaveLength(1);
  });

  test('tell of a task that was canceled, and of a follow-up message', async () => {
    const it = await world((turn) => {
      if (turn.text !== 'more') turn.task();
      turn.status(TaskState.TASK_STATE_INPUT_REQUIRED);
    });
    const taskId = await it.ask();
    const other = await startHook();
    const configuration = { taskPushNotificationConfig: { url: hook.url, id: 'second' } };
    expect(other.received).toEqual([]);
    await rpc(it.node, 'SendMessage', { message: plainMessage('more', { taskId }), configuration });
    await rpc(it.node, 'CancelTask', { id: taskId });
    await it.sending.sweep();
    const states = hook.received.map(({ body }) => {
      const { task, statusUpdate } = JSON.parse(body);
      return (task ?? statusUpdate).status.state.replace('TASK_STATE_', '');
    });
    expect(states.sort()).toEqual(
      ['WORKING', 'INPUT_REQUIRED', 'INPUT_REQUIRED', 'INPUT_REQUIRED', 'CANCELED', 'CANCELED'].sort(),
    );
  });

  test('tell of an offer that is decided, once, however often it is sent', async () => {
    const it = await world(done);
    const configuration = { taskPushNotificationConfig: { url: hook.url } };
    const stored = await it.node.ledger.createTask({
      id: 'task_offer',
      tenant: 'acme',
      peer: PEER,
      contextId: 'ctx_task_offer',
      state: 'TASK_STATE_COMPLETED',
      statusAt: '2026-01-31T10:00:00.000Z',
      task: '{}',
      handoffId: null,
    });
    const { acceptedTask, scriptedReceiver } = await import('../transport/support.js');
    const receiver = scriptedReceiver((message) => acceptedTask(message, stored.id));
    const network = networkTo(hook);
    const node = await start({ ledger: it.node.ledger, network, receiver, agentUrl: it.node.url });
    for (let times = 0; times < 3; times += 1) {
      const { body } = await rpc(node, 'SendMessage', { message: offerMessage(), configuration });
      expect(body.result.task.id).toBe(stored.id);
      await it.sending.sweep();
    }
    expect(kinds(hook)).toEqual(['task']);
    expect(JSON.parse(hook.received[0]?.body ?? '').task).toMatchObject({ id: stored.id, artifacts: [{}] });
  });
});

describe('an endpoint', () => {
  test('[R-147] that is down for three days gets everything afterwards, in order, after a bounded number of attempts', async () => {
    const it = await world(threeEvents);
    hook.answer = answerWith(503);
    await it.ask();
    for (let at = 0; at < 3 * DAY_MS; at += 5 * 60_000) {
      await it.sending.delivery.takeUp('acme');
      await until(async () => (await it.sending.sweep()) === 0);
      clock.advance(5 * 60_000);
    }
    const tries = hook.received.length;
    expect(tries).toBeGreaterThan(10);
    expect(tries).toBeLessThan(60);
    expect(new Set(hook.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    hook.received.length = 0;
    hook.answer = answerWith(200);
    clock.advance(6 * HOUR_MS);
    await it.sending.sweep();
    expect(kinds(hook)).toEqual(['task', 'artifactUpdate', 'statusUpdate']);
    expect(await list(it)).toEqual([]);
  });

  test('[R-147] that never comes back: the notification is given up after a week, kept where it can be seen, and can be tried again', async () => {
    const it = await world(done);
    hook.answer = answerWith(500, {}, 'inner workings');
    await it.ask();
    await it.sending.sweep();
    clock.advance(7 * DAY_MS);
    await it.sending.sweep();
    expect(await list(it)).toMatchObject([{ state: 'dead', tries: 2, reason: 'http_500' }]);
    expect(await it.node.ledger.countNotifications('acme')).toEqual({ waiting: 0, dead: 1 });
    expect(it.sending.logged.at(-1)).toMatchObject({ message: expect.stringContaining('given up') });
    expect(JSON.stringify(it.sending.logged)).not.toContain('inner workings');
    hook.answer = answerWith(204);
    await it.node.ledger.retryNotifications({ tenant: 'acme', agent: it.node.url, limit: 10 });
    await it.sending.sweep();
    expect(await list(it)).toEqual([]);
  });

  test('[R-147] that answers 410 is sent nothing more, and what it did not get can be seen', async () => {
    const it = await world(threeEvents);
    hook.answer = answerWith(410);
    await it.ask();
    await it.sending.sweep();
    clock.advance(DAY_MS);
    await it.sending.sweep();
    expect(hook.received).toHaveLength(1);
    expect((await list(it)).map(({ state, reason }) => `${state} ${reason}`)).toEqual([
      'dead gone',
      'dead gone',
      'dead gone',
    ]);
  });

  test('[R-147] that asks for time with 429 and Retry-After gets it, but not for ever', async () => {
    const it = await world(done);
    hook.answer = answerWith(429, { 'retry-after': '7200' });
    await it.ask();
    await it.sending.sweep();
    clock.advance(2 * HOUR_MS - 1);
    await it.sending.sweep();
    expect(hook.received).toHaveLength(1);
    hook.answer = answerWith(429, { 'retry-after': '999999999' });
    clock.advance(1);
    await it.sending.sweep();
    expect(hook.received).toHaveLength(2);
    hook.answer = (_request, response) =>
      answerWith(503, { 'retry-after': new Date(clock.now().getTime() + HOUR_MS).toUTCString() })(
        _request,
        response,
      );
    clock.advance(DAY_MS);
    await it.sending.sweep();
    expect(hook.received).toHaveLength(3);
    clock.advance(HOUR_MS - 1);
    await it.sending.sweep();
    expect(hook.received).toHaveLength(3);
    clock.advance(1);
    await it.sending.sweep();
    expect(hook.received).toHaveLength(4);
  });

  test.each([301, 302, 303, 307, 308])('[R-148] that redirects with %i is not followed', async (status) => {
    const inside = await startHook();
    const it = await world(done, { hooks: [inside] });
    hook.answer = answerWith(status, { location: inside.url });
    await it.ask({ authentication: { scheme: 'Bearer', credentials: 'secret' } });
    await it.sending.sweep();
    expect(inside.received).toEqual([]);
    expect(await list(it)).toMatchObject([{ state: 'waiting', tries: 1, reason: 'url_forbidden:redirect' }]);
  });

  test.each([
    ['an error in its body', answerWith(200, {}, '{"error":"no"}')],
    ['an encoded body', answerWith(200, { 'content-encoding': 'gzip' }, 'not gzip')],
    ['a body that says it is endless', answerWith(202, { 'content-length': '99999999999' })],
    [
      'a body that is endless',
      (_request: unknown, response: Parameters<Hook['answer']>[1]) => {
        response.writeHead(200);
        response.write('x'.repeat(100_000));
      },
    ],
  ])('that takes the notification and answers with %s has got it', async (_what, answer) => {
    const it = await world(done);
    hook.answer = answer;
    await it.ask();
    await it.sending.sweep();
    expect(await list(it)).toEqual([]);
    expect(hook.received).toHaveLength(1);
  });

  test('[R-147] that hangs is left after a time, and holds up no other', async () => {
    const hanging = await startHook();
    hanging.answer = () => undefined;
    const it = await world(done, { hooks: [hanging], timeoutMs: 1_000 });
    for (let n = 0; n < 40; n += 1) await it.ask({ url: hanging.url });
    await it.ask();
    const startedAt = performance.now();
    for (let looks = 0; looks < 5 && hook.received.length === 0; looks += 1) {
      await it.sending.delivery.takeUp('acme');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(hook.received).toHaveLength(1);
    expect(performance.now() - startedAt).toBeLessThan(900);
    await until(
      async () => (await list(it)).filter(({ reason }) => reason === 'outcome_unknown').length >= 32,
      5_000,
    );
  });

  test('[R-148] whose name has come to point inside is not connected to', async () => {
    const network = madeUpNetwork(hook);
    const it = await world(done, { network: network.guarded });
    await it.ask({ url: 'https://hook.example.com/' });
    network.addresses = ['169.254.169.254'];
    await it.sending.sweep();
    expect(await list(it)).toMatchObject([{ state: 'waiting', reason: 'url_forbidden:address' }]);
    expect(network.dialled).toEqual([]);
    network.addresses = ['93.184.215.14'];
    clock.advance(HOUR_MS);
    await it.sending.sweep();
    expect(network.dialled).toMatchObject([
      { address: '93.184.215.14', host: 'hook.example.com', secure: true },
    ]);
    expect(hook.received).toHaveLength(1);
  });
});
