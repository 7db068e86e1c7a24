import { TaskState } from '@a2a-js/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { scripted } from '../transport/executors.js';
import { HOSTILE } from '../transport/hostile-urls.js';
import { type Answer, offerMessage, PEER, plainMessage, rest, rpc, STRANGER } from '../transport/support.js';
import { openStream, start } from '../transport/task-nodes.js';
import { type MadeUpNetwork, madeUpNetwork, SIGNING_TOKEN, startHook } from './support.js';

const URL_ = 'https://hook.example.com/in?key=k';
const CREDENTIALS = 'credentials-canary';
const TOKEN = 'token-canary';

type TestNode = Awaited<ReturnType<typeof start>>;

let node: TestNode;
let network: MadeUpNetwork;
let taskId: string;

beforeEach(async () => {
  network = madeUpNetwork(await startHook());
  const executor = scripted((turn) => {
    turn.task();
    turn.status(TaskState.TASK_STATE_INPUT_REQUIRED);
  });
  node = await start({ network: network.guarded, executor });
  taskId = (await rpc(node, 'SendMessage', { message: plainMessage() })).body.result.task.id;
});

const config = (over: object = {}) => ({
  taskId,
  url: URL_,
  token: TOKEN,
  authentication: { scheme: 'Bearer', credentials: CREDENTIALS },
  ...over,
});

const create = async (over: object = {}, agent = PEER) =>
  (await rpc(node, 'CreateTaskPushNotificationConfig', config(over), { agent })).body;

const call = async (method: string, params: object, agent = PEER): Promise<Answer['body']> =>
  (await rpc(node, `${method}TaskPushNotificationConfig${method === 'List' ? 's' : ''}`, params, { agent }))
    .body;

describe('push notification configurations', () => {
  test('the card says that there are some', async () => {
    const card = await fetch(`${node.url}/.well-known/agent-card.json`);
    expect(await card.json()).toMatchObject({ capabilities: { pushNotifications: true } });
  });

  test('[R-143] are made, read, listed and deleted over JSON-RPC; what proves us is never shown', async () => {
    const { result } = await create({ id: 'mine' });
    const shown = { id: 'mine', taskId, url: URL_, authentication: { scheme: 'Bearer' } };
    expect(result).toEqual(shown);
    expect((await call('Get', { taskId, id: 'mine' })).result).toEqual(shown);
    const { result: unnamed } = await create({
      url: 'https://other.example.com/',
      authentication: undefined,
    });
    expect(unnamed.id).toMatch(/^push_/);
    const { result: list } = await call('List', { taskId });
    expect(list.configs.map(({ id }: { id: string }) => id)).toEqual(['mine', unnamed.id]);
    expect((await call('Delete', { taskId, id: 'mine' })).error).toBeUndefined();
    expect((await call('Delete', { taskId, id: 'mine' })).error).toBeUndefined();
    expect((await call('Get', { taskId, id: 'mine' })).error.code).toBe(-32001);
    expect((await call('List', { taskId })).result.configs).toHaveLength(1);
  });

  test('and over HTTP+JSON', async () => {
    const at = `/tasks/${taskId}/pushNotificationConfigs`;
    const made = await rest(node, 'POST', at, config({ id: 'mine', taskId: undefined }));
    expect(made.status).toBeLessThan(300);
    const shown = { id: 'mine', taskId, url: URL_, authentication: { scheme: 'Bearer' } };
    expect(made.body).toEqual(shown);
    expect((await rest(node, 'GET', `${at}/mine`)).body).toEqual(shown);
    expect((await rest(node, 'GET', at)).body.configs).toEqual([shown]);
    expect((await rest(node, 'DELETE', `${at}/mine`)).status).toBeLessThan(300);
    expect((await rest(node, 'DELETE', `${at}/mine`)).status).toBeLessThan(300);
    expect((await rest(node, 'GET', `${at}/mine`)).status).toBe(404);
  });

  test('[R-144] of a foreign task are as those of an unknown one, on every operation and binding', async () => {
    await create({ id: 'mine' });
    const unknown = 'task-nobody-has';
    for (const method of ['Create', 'Get', 'List', 'Delete']) {
      const params = (id: string) =>
        method === 'Create' ? config({ taskId: id }) : { taskId: id, id: 'mine' };
      const foreign = await call(method, params(taskId), STRANGER);
      expect(foreign.error.code, method).toBe(-32001);
      expect(foreign, method).toEqual(await call(method, params(unknown), STRANGER));
    }
    for (const [method, path] of [
      ['POST', ''],
      ['GET', ''],
      ['GET', '/mine'],
      ['DELETE', '/mine'],
    ] as const) {
      const at = (id: string) => `/tasks/${id}/pushNotificationConfigs${path}`;
      const body = method === 'POST' ? config() : undefined;
      const foreign = await rest(node, method, at(taskId), body, { agent: STRANGER });
      expect(foreign.status).toBe(404);
      expect(foreign.body).toEqual((await rest(node, method, at(unknown), body, { agent: STRANGER })).body);
    }
    expect((await call('List', { taskId })).result.configs).toHaveLength(1);
  });

  test.each([
    ['no URL', { url: '' }],
    ['an id that is none', { id: 'a/b' }],
    ['a token that no header can carry', { token: 'a\nb' }],
    ['a long token', { token: 'x'.repeat(513) }],
    ['a secret that is too short', { token: `whsec_${Buffer.alloc(23).toString('base64')}` }],
    ['a secret that is no base64', { token: 'whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!' }],
    ['a scheme that is none', { authentication: { scheme: 'Bearer x\r\nEvil: 1', credentials: 'x' } }],
    ['no scheme', { authentication: { credentials: 'x' } }],
    ['credentials with a line break', { authentication: { scheme: 'Bearer', credentials: 'x\r\nEvil: 1' } }],
  ])('with %s are refused', async (_what, over) => {
    const { error } = await create(over);
    expect(error.code).toBe(-32602);
    expect(JSON.stringify(error)).not.toContain('Evil');
    expect((await call('List', { taskId })).result.configs ?? []).toEqual([]);
  });

  test('are bounded for each task', async () => {
    for (let n = 0; n < 8; n += 1) expect((await create()).error).toBeUndefined();
    expect((await create()).error.data[0]).toMatchObject({ reason: 'PUSH_LIMIT', metadata: { limit: '8' } });
  });

  test('[R-148] are refused for every hostile URL, on every way in, and nothing is dialled', async () => {
    const accepted: string[] = [];
    const note = ({ body }: Answer, url: string) => body.error === undefined && accepted.push(url);
    const create = (url: string) => rpc(node, 'CreateTaskPushNotificationConfig', { taskId, url });
    for (const [, url] of HOSTILE) note(await create(url), url);
    // Every way in leads to the same door; each is tried on a share of them.
    for (const [, url] of HOSTILE.filter((_, n) => n % 16 === 0)) {
      const configuration = { taskPushNotificationConfig: { url } };
      const snake = { task_push_notification_config: { url } };
      const offer = { message: offerMessage() };
      const ways = [
        rest(node, 'POST', `/tasks/${taskId}/pushNotificationConfigs`, { url }),
        rpc(node, 'SendMessage', { message: plainMessage(), configuration }),
        rpc(node, 'SendMessage', { message: plainMessage('x', { taskId }), configuration }),
        rpc(node, 'SendMessage', { ...offer, configuration }),
        rpc(node, 'SendMessage', { ...offer, configuration: snake }),
        rest(node, 'POST', '/message:send', { message: plainMessage(), configuration }),
        rest(node, 'POST', '/message:send', { ...offer, configuration: snake }),
      ];
      for (const answer of await Promise.all(ways)) note(answer, url);
      const params = { message: plainMessage(), configuration };
      const stream = await (await openStream(node, 'SendStreamingMessage', params)).text();
      if (!/"error":/.test(stream)) accepted.push(url);
    }
    expect(accepted).toEqual([]);
    expect(network.dialled).toEqual([]);
    expect(node.receiver.received).toEqual([]);
    expect((await call('List', { taskId })).result.configs ?? []).toEqual([]);
  });

  test('[R-148] are refused for a name that resolves to an address inside, be it one of several', async () => {
    for (const addresses of [['10.0.0.1'], ['93.184.215.14', '169.254.169.254'], ['::ffff:127.0.0.1'], []]) {
      network.addresses = addresses;
      expect((await create()).error.code).toBe(-32602);
    }
    expect(network.dialled).toEqual([]);
  });

  test('that sign are shown without their secret, and nothing secret is logged', async () => {
    const { result } = await create({ token: SIGNING_TOKEN });
    expect(JSON.stringify(result)).not.toContain('whsec_');
    const logged = JSON.stringify(node.logger.lines);
    for (const secret of [CREDENTIALS, TOKEN, SIGNING_TOKEN, 'key=k']) expect(logged).not.toContain(secret);
  });
});
