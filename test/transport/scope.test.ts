import { TaskState } from '@a2a-js/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LedgerStore } from '../../src/ledger/index.js';
import type { Task } from '../../src/protocol/index.js';
import { createMemoryLedger } from '../../src/storage/index.js';
import { scripted } from './executors.js';
import { type Answer, PEER, plainMessage, rest, rpc, STRANGER, startNode, type TestNode } from './support.js';

let node: TestNode;
let ledger: LedgerStore;
let mine: string;

const DECIDED: Task = {
  id: 'task_decided',
  contextId: 'ctx_decided',
  status: { state: 'TASK_STATE_REJECTED', timestamp: '2026-01-31T10:00:00.000Z' },
  artifacts: [{ artifactId: 'rejection', parts: [{ data: { code: 'records_disagree', final: true } }] }],
};

beforeAll(async () => {
  ledger = createMemoryLedger();
  const executor = scripted((turn) => {
    turn.task();
    turn.artifact('a', 'text');
    turn.status(turn.text === 'park' ? TaskState.TASK_STATE_INPUT_REQUIRED : TaskState.TASK_STATE_COMPLETED);
  });
  node = await startNode({ ledger, executor });
  mine = (await rpc(node, 'SendMessage', { message: plainMessage('park') })).body.result.task.id;
  const key = { tenant: 'acme', root: PEER, sender: PEER, handoffId: 'CASE-7001:4', attempt: 1 };
  await ledger.reject({
    key,
    ref: { tenant: 'acme', root: PEER, caseId: 'CASE-7001' },
    digest: 'a'.repeat(64),
    code: 'records_disagree',
    answer: '{}',
    task: {
      id: DECIDED.id,
      contextId: DECIDED.contextId,
      state: DECIDED.status.state,
      statusAt: DECIDED.status.timestamp,
      task: JSON.stringify(DECIDED),
    },
    principal: { agent: PEER, tenant: 'acme', tokenId: 'jti-1' },
    data: {},
  });
});

afterAll(() => node.close());

type Operation = (id: string, agent: string) => Promise<Answer>;

const OPERATIONS: Record<string, Operation> = {
  'GetTask by JSON-RPC': (id, agent) => rpc(node, 'GetTask', { id }, { agent }),
  'GetTask by HTTP+JSON': (id, agent) => rest(node, 'GET', `/tasks/${id}`, undefined, { agent }),
  'CancelTask by JSON-RPC': (id, agent) => rpc(node, 'CancelTask', { id }, { agent }),
  'CancelTask by HTTP+JSON': (id, agent) => rest(node, 'POST', `/tasks/${id}:cancel`, {}, { agent }),
  'SubscribeToTask by JSON-RPC': (id, agent) => rpc(node, 'SubscribeToTask', { id }, { agent }),
  'SubscribeToTask by HTTP+JSON': (id, agent) =>
    rest(node, 'GET', `/tasks/${id}:subscribe`, undefined, { agent }),
  'SendMessage by JSON-RPC': (taskId, agent) =>
    rpc(node, 'SendMessage', { message: plainMessage('x', { taskId, messageId: 'm' }) }, { agent }),
  'SendMessage by HTTP+JSON': (taskId, agent) =>
    rest(
      node,
      'POST',
      '/message:send',
      { message: plainMessage('x', { taskId, messageId: 'm' }) },
      { agent },
    ),
  'SendStreamingMessage by JSON-RPC': (taskId, agent) =>
    rpc(node, 'SendStreamingMessage', { message: plainMessage('x', { taskId, messageId: 'm' }) }, { agent }),
  'SendStreamingMessage by HTTP+JSON': (taskId, agent) =>
    rest(
      node,
      'POST',
      '/message:stream',
      { message: plainMessage('x', { taskId, messageId: 'm' }) },
      { agent },
    ),
};

describe.each(Object.entries(OPERATIONS))('%s', (_name, operation) => {
  test("[R-087] of another peer's task is answered as of one that never was", async () => {
    const unknown = await operation('task_that_never_was', STRANGER);
    expect([200, 404]).toContain(unknown.status);
    expect(JSON.stringify(unknown.body)).toContain('TASK_NOT_FOUND');
    for (const id of [mine, DECIDED.id]) {
      const foreign = await operation(id, STRANGER);
      expect({ status: foreign.status, body: foreign.body }).toEqual({
        status: unknown.status,
        body: unknown.body,
      });
    }
  });
});

test('[R-087] nothing a stranger tried has changed the task', async () => {
  expect((await rpc(node, 'GetTask', { id: mine })).body.result.status.state).toBe(
    'TASK_STATE_INPUT_REQUIRED',
  );
});

test("[R-087] a list shows only the caller's own tasks, whatever context it names", async () => {
  const { contextId } = (await rpc(node, 'GetTask', { id: mine })).body.result;
  for (const filter of [{}, { contextId }, { contextId: DECIDED.contextId }]) {
    const { result } = (await rpc(node, 'ListTasks', filter, { agent: STRANGER })).body;
    expect(result).toEqual({ tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 });
  }
});

test('the tenant of a path or body means nothing', async () => {
  expect((await rest(node, 'GET', `/globex/tasks/${mine}`)).status).toBe(200);
  expect((await rest(node, 'GET', `/globex/tasks/${mine}`, undefined, { agent: STRANGER })).status).toBe(404);
  expect((await rpc(node, 'GetTask', { tenant: 'globex', id: mine })).body.result.id).toBe(mine);
});

describe('the task of a decided offer', () => {
  test('[R-113] is answered from the ledger, with the decision in its artifact', async () => {
    expect((await rpc(node, 'GetTask', { id: DECIDED.id })).body.result).toEqual(DECIDED);
    expect((await rest(node, 'GET', `/tasks/${DECIDED.id}`)).body).toEqual(DECIDED);
  });

  test('takes no further message and cannot be canceled or subscribed to', async () => {
    const message = plainMessage('more', { taskId: DECIDED.id });
    expect((await rpc(node, 'SendMessage', { message })).body.error.code).toBe(-32004);
    expect((await rpc(node, 'CancelTask', { id: DECIDED.id })).body.error.code).toBe(-32002);
    expect((await rpc(node, 'SubscribeToTask', { id: DECIDED.id })).body.error.code).toBe(-32004);
  });
});

describe('ListTasks', () => {
  let listing: TestNode;

  beforeAll(async () => {
    listing = await startNode();
    for (let index = 0; index < 7; index += 1) {
      const statusAt = `2026-01-31T10:00:0${Math.floor(index / 2)}.000Z`;
      const state = index % 2 === 0 ? ('TASK_STATE_COMPLETED' as const) : ('TASK_STATE_REJECTED' as const);
      const task: Task = {
        ...DECIDED,
        id: `t${index}`,
        contextId: `c${index % 3}`,
        status: { state, timestamp: statusAt },
      };
      const { id, contextId } = task;
      const row = { id, tenant: 'acme', peer: PEER, contextId, state, statusAt, task: JSON.stringify(task) };
      await listing.ledger.createTask({ ...row, handoffId: null });
    }
  });

  afterAll(() => listing.close());

  const list = async (filter: object) => (await rpc(listing, 'ListTasks', filter)).body;
  const ids = (tasks: { id: string }[]) => tasks.map(({ id }) => id);

  test('is ordered by status time, newest first, and pages by cursor without gap or repetition', async () => {
    const all = (await list({})).result;
    const times = all.tasks.map((task: Task) => task.status.timestamp);
    expect(times).toEqual([...times].sort().reverse());
    const paged: string[] = [];
    let pageToken = '';
    do {
      const { result } = await list({ pageSize: 2, pageToken });
      expect([result.pageSize, result.totalSize]).toEqual([2, 7]);
      paged.push(...ids(result.tasks));
      pageToken = result.nextPageToken;
    } while (pageToken !== '');
    expect(paged).toEqual(ids(all.tasks));
    const { body } = await rest(listing, 'GET', '/tasks?pageSize=7');
    expect([ids(body.tasks), body.nextPageToken]).toEqual([paged, '']);
  });

  test('filters by context, state and time, the time included', async () => {
    expect((await list({ contextId: 'c1' })).result.totalSize).toBe(2);
    expect((await list({ status: 'TASK_STATE_REJECTED' })).result.totalSize).toBe(3);
    const since = await list({ statusTimestampAfter: '2026-01-31T10:00:02Z' });
    expect(ids(since.result.tasks).sort()).toEqual(['t4', 't5', 't6']);
    const { body } = await rest(listing, 'GET', '/tasks?statusTimestampAfter=2026-01-31T10:00:03.000Z');
    expect(ids(body.tasks)).toEqual(['t6']);
  });

  test('shows artifacts only where they are asked for', async () => {
    expect((await list({})).result.tasks[0].artifacts).toBeUndefined();
    expect((await list({ includeArtifacts: true })).result.tasks[0].artifacts).toHaveLength(1);
    expect((await rest(listing, 'GET', '/tasks?includeArtifacts=true')).body.tasks[0].artifacts).toHaveLength(
      1,
    );
  });

  test.each([
    { pageSize: 0 },
    { pageSize: 101 },
    { pageSize: 1.5 },
    { pageSize: 'many' },
    { historyLength: -1 },
    { status: 'TASK_STATE_SOON' },
    { statusTimestampAfter: 'yesterday' },
    { pageToken: 'e30' },
    { pageToken: '%%%' },
  ])('refuses %j', async (filter) => {
    expect((await list(filter)).error.code).toBe(-32602);
    const query = new URLSearchParams(
      Object.entries(filter).map(([key, value]): [string, string] => [key, String(value)]),
    );
    if (!('pageSize' in filter && filter.pageSize === 1.5)) {
      expect((await rest(listing, 'GET', `/tasks?${query}`)).status).toBe(400);
    }
  });

  test('refuses a parameter that is given twice', async () => {
    for (const name of ['contextId', 'pageToken', 'statusTimestampAfter', 'status']) {
      expect((await rest(listing, 'GET', `/tasks?${name}=a&${name}=b`)).status, name).toBe(400);
    }
  });
});

describe('what this agent does not do', () => {
  test.each([
    ['GetExtendedAgentCard', -32004],
    ['tasks/get', -32601],
    ['__proto__', -32601],
  ])('%s is error %i', async (method, code) => {
    const found = await rpc(node, method, { taskId: mine, id: 'c', url: 'https://hook.example.com/' });
    expect([found.status, found.body.error.code]).toEqual([200, code]);
  });

  test.each([
    ['GET', '/extendedAgentCard', 400],
    ['GET', '/message:send', 404],
    ['POST', '/nothing/here/at/all', 404],
  ] as const)('%s %s is %i, in JSON', async (method, path, status) => {
    const found = await rest(
      node,
      method,
      path,
      method === 'POST' ? { url: 'https://hook.example.com/' } : undefined,
    );
    expect([found.status, found.body.error.code]).toEqual([status, status]);
  });
});
