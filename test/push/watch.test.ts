import { createHash, createHmac } from 'node:crypto';
import { TaskState } from '@a2a-js/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Holdfast, openHoldfast, type TaskNews } from '../../src/index.js';
import type { TaskWatch } from '../../src/ledger/index.js';
import { createMemoryLedger } from '../../src/storage/index.js';
import { initPair, temporaryFolder } from '../cli/support.js';
import { TestClock } from '../storage/suite/fixtures.js';
import { gate, scripted } from '../transport/executors.js';
import { plainMessage, until } from '../transport/support.js';
import { start } from '../transport/task-nodes.js';
import { afterwards } from './support.js';

const PEER = 'https://billing.example.com';
const SECRET = Buffer.alloc(32, 3);
const TOKEN = 'the-one-token';
const STATUS = { taskId: 'task_1', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } };
const BODY = JSON.stringify({ statusUpdate: STATUS });

type TestNode = Awaited<ReturnType<typeof start>>;

let node: TestNode;
let clock: TestClock;
let news: TaskWatch[];
let onNews: (watch: TaskWatch) => Promise<void>;

beforeEach(async () => {
  clock = new TestClock();
  news = [];
  onNews = async (watch) => void news.push(watch);
  const ledger = createMemoryLedger({ clock });
  node = await start({ ledger, clock, onNews: (watch) => onNews(watch) });
  const watch = {
    tenant: 'acme',
    agent: node.url,
    peer: PEER,
    taskId: 'task_1',
    secret: SECRET.toString('base64'),
  };
  const tokenHash = createHash('sha256').update(TOKEN).digest('hex');
  await ledger.addWatch({ ...watch, watchId: 'watch_1', tokenHash, lastsMs: 3_600_000 });
  await ledger.addWatch({ ...watch, watchId: 'watch_2', tokenHash: 'a'.repeat(64), lastsMs: 3_600_000 });
  await ledger.addWatch({ ...watch, watchId: 'watch_3', agent: PEER, tokenHash, lastsMs: 3_600_000 });
});

interface Sent {
  readonly watchId?: string;
  readonly id?: string;
  readonly at?: number;
  readonly body?: string;
  readonly signed?: string;
  readonly headers?: Record<string, string | null>;
}

async function send(sent: Sent = {}): Promise<number> {
  const { watchId = 'watch_1', id = 'push_x-1', body = BODY, at = clock.now().getTime() } = sent;
  const timestamp = String(Math.floor(at / 1000));
  const mac = createHmac('sha256', SECRET)
    .update(`${id}.${timestamp}.${sent.signed ?? body}`)
    .digest('base64');
  const headers: Record<string, string | null> = {
    'content-type': 'application/a2a+json',
    authorization: `Bearer ${TOKEN}`,
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${mac}`,
    ...sent.headers,
  };
  const given = Object.entries(headers).filter((one): one is [string, string] => one[1] !== null);
  const answer = await fetch(`${node.url}/push/${watchId}`, { method: 'POST', headers: given, body });
  await answer.arrayBuffer();
  return answer.status;
}

describe('a notification of a watched task', () => {
  test('[R-143][R-149] that proves where it comes from leads to one read, and nothing of it is believed', async () => {
    expect(await send()).toBe(200);
    expect(news).toMatchObject([{ watchId: 'watch_1', peer: PEER, taskId: 'task_1' }]);
    expect(JSON.stringify(news)).not.toContain('COMPLETED');
    for (const id of ['task_1', 'task_x']) expect(await node.ledger.getTask('acme', PEER, id)).toBeNull();
  });

  test('[R-145][R-175] that comes again is answered 200 and leads to nothing more, also at the same moment and under a new time stamp', async () => {
    expect(await Promise.all([send(), send(), send()])).toEqual([200, 200, 200]);
    clock.advance(60_000);
    expect(await send()).toBe(200);
    expect(news).toHaveLength(1);
  });

  test('[R-145] that overtakes another leads to a read all the same', async () => {
    expect([await send({ id: 'push_x-2' }), await send({ id: 'push_x-1' })]).toEqual([200, 200]);
    expect(news).toHaveLength(2);
  });

  test('[R-145] whose task cannot be read is refused for now, and leads to a read when it comes again', async () => {
    const works = onNews;
    onNews = async () => {
      throw new Error('the peer is down');
    };
    expect(await send()).toBe(500);
    onNews = works;
    expect(await send()).toBe(200);
    expect(news).toHaveLength(1);
  });

  test.each<[string, number, () => Sent]>([
    ['of an unknown watch', 401, () => ({ watchId: 'watch_9' })],
    ['of something that is no watch', 401, () => ({ watchId: 'x' })],
    ["with another watch's token", 401, () => ({ watchId: 'watch_2' })],
    ["of another agent's watch", 401, () => ({ watchId: 'watch_3' })],
    ['without a token', 401, () => ({ headers: { authorization: null } })],
    ['with another token', 401, () => ({ headers: { authorization: 'Bearer other' } })],
    ['without a signature', 401, () => ({ headers: { 'webhook-signature': null } })],
    ['with a signature of another version', 401, () => ({ headers: { 'webhook-signature': 'v1a,AAAA' } })],
    ['with a signature of another body', 401, () => ({ signed: `${BODY} ` })],
    ['with a signature of another id', 401, () => ({ headers: { 'webhook-id': 'push_x-2' } })],
    ['with an id that could be read in two ways', 401, () => ({ id: 'push_x.1' })],
    ['without an id', 401, () => ({ headers: { 'webhook-id': null } })],
    ['with an old time stamp', 401, () => ({ at: clock.now().getTime() - 301_000 })],
    ['with a time stamp to come', 401, () => ({ at: clock.now().getTime() + 301_000 })],
    ['without a time stamp', 401, () => ({ headers: { 'webhook-timestamp': null } })],
    ['with a time stamp that is none', 401, () => ({ headers: { 'webhook-timestamp': '1e9' } })],
    [
      'of another task',
      400,
      () => ({ body: JSON.stringify({ statusUpdate: { ...STATUS, taskId: 'task_2' } }) }),
    ],
    [
      'of two things at once',
      400,
      () => ({ body: JSON.stringify({ statusUpdate: STATUS, task: { id: 'task_1' } }) }),
    ],
    ['that is no JSON', 400, () => ({ body: 'task_1' })],
    ['of another type', 400, () => ({ headers: { 'content-type': 'text/plain' } })],
    ['that is too large', 413, () => ({ body: JSON.stringify({ pad: 'x'.repeat(2 ** 20) }) })],
  ])('[R-143][R-144][R-146] %s is refused', async (_what, status, sent) => {
    expect(await send(sent())).toBe(status);
    expect(news).toEqual([]);
    expect(await node.ledger.isHeard('watch_1', 'push_x-1')).toBe(false);
    expect(JSON.stringify(node.logger.lines)).not.toContain(TOKEN);
  });

  test('[R-146] is taken up to five minutes off, and not once the watch is over', async () => {
    expect(await send({ at: clock.now().getTime() - 299_000 })).toBe(200);
    expect(await send({ id: 'push_x-2', at: clock.now().getTime() + 299_000 })).toBe(200);
    clock.advance(3_600_000);
    expect(await send({ id: 'push_x-3' })).toBe(401);
  });
});

describe('two agents', () => {
  const pace = { sweepMs: 50, pushBackoffMs: [100] };
  const door = gate();

  async function ask(from: Holdfast, url: string): Promise<string> {
    const answer = await fetch(`${url}/a2a/rest/message:send`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'a2a-version': '1.0',
        authorization: `Bearer ${await from.identity.tokenFor(url)}`,
      },
      body: JSON.stringify({ message: plainMessage(), configuration: { returnImmediately: true } }),
    });
    return ((await answer.json()) as { task: { id: string } }).task.id;
  }

  test('[R-143][R-144][R-149] one watches its task at the other, and is given it as it is there', async () => {
    const folder = temporaryFolder();
    afterwards.push(() => folder.remove());
    const pair = await initPair(folder.path);
    const executor = scripted(async (turn) => {
      turn.task();
      await door.wait;
      turn.artifact('a', 'result');
      turn.status(TaskState.TASK_STATE_COMPLETED);
    });
    const billing = await openHoldfast({ dir: pair.billing.dir, executor, ports: { pace } });
    const triage = await openHoldfast({ dir: pair.triage.dir, ports: { pace } });
    afterwards.push(() => Promise.all([billing.close(), triage.close()]));
    const heard: TaskNews[] = [];
    let fails = 1;
    triage.onTaskNews((one) => {
      if (fails-- > 0) throw new Error('not now');
      heard.push(one);
    });
    await Promise.all([billing.start(), triage.start()]);

    await expect(triage.watchTask({ peer: billing.url, taskId: 'task-of-nobody' })).rejects.toMatchObject({
      code: 'not_found',
    });
    await expect(triage.watchTask({ peer: PEER, taskId: 'x' })).rejects.toMatchObject({
      code: 'peer_unknown',
    });
    const taskId = await ask(triage, billing.url);
    const { watchId } = await triage.watchTask({ peer: billing.url, taskId });
    door.open();
    await until(
      () => heard.some(({ task }) => JSON.stringify(task).includes('TASK_STATE_COMPLETED')),
      20_000,
    );
    expect(heard.at(-1)).toMatchObject({ watchId, peer: billing.url, taskId, task: { id: taskId } });
    await until(async () => (await billing.ledger.countNotifications('default')).waiting === 0, 20_000);
    expect(await billing.ledger.countNotifications('default')).toEqual({ waiting: 0, dead: 0 });

    await triage.unwatchTask(watchId);
    const { configs = [] } = (await (
      await fetch(`${billing.url}/a2a/rest/tasks/${taskId}/pushNotificationConfigs`, {
        headers: {
          'a2a-version': '1.0',
          authorization: `Bearer ${await triage.identity.tokenFor(billing.url)}`,
        },
      })
    ).json()) as { configs?: unknown[] };
    expect(configs).toEqual([]);
  }, 60_000);
});
