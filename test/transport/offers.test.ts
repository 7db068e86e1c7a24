import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HoldfastError } from '../../src/core/index.js';
import { EXTENSION_URI, type Message } from '../../src/protocol/index.js';
import {
  acceptedTask,
  eventsIn,
  offerMessage,
  PEER,
  plainMessage,
  rest,
  rpc,
  STRANGER,
  scriptedReceiver,
  startNode,
  type TestNode,
} from './support.js';

let node: TestNode;
let answer: (message: Message) => ReturnType<typeof acceptedTask>;

beforeEach(async () => {
  answer = (message) => acceptedTask(message, 'task_fixed');
  node = await startNode({ receiver: scriptedReceiver((message) => answer(message)) });
});

afterEach(() => node.close());

function infoOf(details: readonly { '@type': string; domain?: string; reason?: string }[]) {
  return details.find((one) => one['@type'].endsWith('ErrorInfo'));
}

describe('an offer', () => {
  test('[R-092][R-108][R-113] is answered by the receiver, with its decision as an artifact of its own task', async () => {
    const found = await rpc(node, 'SendMessage', { message: offerMessage() });
    expect(found.status).toBe(200);
    expect(found.body).toEqual({
      jsonrpc: '2.0',
      id: 7,
      result: { task: acceptedTask(offerMessage(), 'task_fixed') },
    });
    expect(node.receiver.received).toEqual([offerMessage()]);
    expect(node.receiver.peers).toEqual([PEER]);
  });

  test('[R-092] is the same over HTTP+JSON, below a tenant too', async () => {
    for (const path of ['/message:send', '/any-tenant/message:send']) {
      const found = await rest(node, 'POST', path, { message: offerMessage() });
      expect(found.status).toBe(200);
      expect(found.body).toEqual({ task: acceptedTask(offerMessage(), 'task_fixed') });
    }
    expect(node.receiver.received).toEqual([offerMessage(), offerMessage()]);
  });

  test('is known by snake_case names as well', async () => {
    const { messageId: message_id, parts, ...others } = offerMessage();
    const snake = {
      ...others,
      message_id,
      parts: parts.map(({ mediaType: media_type, ...part }) => (media_type ? { ...part, media_type } : part)),
    };
    await rpc(node, 'SendMessage', { message: snake });
    await rest(node, 'POST', '/message:send', { message: snake });
    expect(node.receiver.received).toEqual([offerMessage(), offerMessage()]);
  });

  test('is streamed as one event, on both bindings', async () => {
    const headers = {
      'content-type': 'application/json',
      'a2a-version': '1.0',
      authorization: `Bearer ${PEER}`,
    };
    const params = { message: offerMessage() };
    const task = acceptedTask(offerMessage(), 'task_fixed');
    const byRpc = await fetch(`${node.url}/a2a`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', id: 'a', method: 'SendStreamingMessage', params }),
    });
    expect(byRpc.headers.get('content-type')).toBe('text/event-stream');
    expect(eventsIn(await byRpc.text())).toEqual([{ jsonrpc: '2.0', id: 'a', result: { task } }]);
    const byRest = await fetch(`${node.url}/a2a/rest/message:stream`, {
      method: 'POST',
      headers,
      body: JSON.stringify(params),
    });
    expect(eventsIn(await byRest.text())).toEqual([{ task }]);
  });

  test('gets as much history as is asked for', async () => {
    const lengths: unknown[] = [];
    for (const configuration of [{}, { historyLength: 0 }, { historyLength: 1, returnImmediately: true }]) {
      const { body } = await rpc(node, 'SendMessage', { message: offerMessage(), configuration });
      lengths.push(body.result.task.history?.length);
    }
    expect(lengths).toEqual([1, undefined, 1]);
  });

  test('[R-045][R-167] with a contextId of the sender is refused; no second context is made', async () => {
    const found = await rpc(node, 'SendMessage', { message: offerMessage({ contextId: 'CASE-7001' }) });
    expect(found.body.error.code).toBe(-32602);
    expect(infoOf(found.body.error.data)).toMatchObject({ domain: 'holdfast', reason: 'MESSAGE_INVALID' });
    expect(found.body.error.data[1].fieldViolations[0].field).toBe('message.contextId');
    expect(node.receiver.received).toEqual([]);
  });

  test('[R-108] with a taskId is refused: unknown ones as unknown, known ones because an offer starts its own', async () => {
    const unknown = await rpc(node, 'SendMessage', { message: offerMessage({ taskId: 'mine' }) });
    expect(unknown.body.error.code).toBe(-32001);
    const plain = await rpc(node, 'SendMessage', { message: plainMessage() });
    const taskId = plain.body.result.task.id;
    const known = await rpc(node, 'SendMessage', { message: offerMessage({ taskId }) });
    expect(known.body.error.code).toBe(-32004);
    const foreign = await rpc(
      node,
      'SendMessage',
      { message: offerMessage({ taskId }) },
      { agent: STRANGER },
    );
    expect(foreign.body).toEqual(unknown.body);
    expect(node.receiver.received).toEqual([]);
  });

  test('a broken message is refused on both bindings before anyone sees it', async () => {
    const part = offerMessage().parts[1];
    const broken: object[] = [
      { ...offerMessage(), parts: [{ ...part, text: 'both' }] },
      { ...offerMessage(), parts: [{}] },
      { ...offerMessage(), parts: 'text' },
      { ...offerMessage(), parts: [] },
      { ...offerMessage(), role: 'ROLE_AGENT' },
      { ...offerMessage(), role: undefined },
      { ...offerMessage(), messageId: '' },
      { ...offerMessage(), parts: [{ raw: '!!' }] },
      { ...offerMessage(), message_id: 'second' },
    ];
    for (const message of broken) {
      const byRpc = await rpc(node, 'SendMessage', { message });
      expect(byRpc.body.error.code).toBe(-32602);
      expect(infoOf(byRpc.body.error.data)?.reason).toBe('MESSAGE_INVALID');
      const byRest = await rest(node, 'POST', '/message:send', { message });
      expect(byRest.status).toBe(400);
    }
    expect(node.receiver.received).toEqual([]);
    expect((await rpc(node, 'ListTasks', {})).body.result.totalSize).toBe(0);
  });

  test('a message that names the extension without an envelope still goes to the receiver, not to an executor', async () => {
    await rpc(node, 'SendMessage', { message: plainMessage('hi', { extensions: [EXTENSION_URI] }) });
    expect(node.receiver.received).toHaveLength(1);
  });

  test('the extension is echoed where it is asked for', async () => {
    const headers = { 'a2a-extensions': `https://example.com/other, ${EXTENSION_URI}` };
    const byRpc = await rpc(node, 'SendMessage', { message: offerMessage() }, { headers });
    expect(byRpc.headers.get('a2a-extensions')).toBe(EXTENSION_URI);
    const byRest = await rest(node, 'POST', '/message:send', { message: offerMessage() }, { headers });
    expect(byRest.headers.get('a2a-extensions')).toBe(EXTENSION_URI);
    const without = await rpc(node, 'SendMessage', { message: offerMessage() });
    expect(without.headers.get('a2a-extensions')).toBeNull();
  });
});

describe('errors that decide nothing', () => {
  test.each([
    ['busy', 503, -32603, 'UNAVAILABLE', '1'],
    ['ledger_unavailable', 503, -32603, 'UNAVAILABLE', '5'],
    ['effect_in_flight', 409, -32603, 'ABORTED', '1'],
    ['duplicate_conflict', 409, -32602, 'ALREADY_EXISTS', null],
    ['internal', 500, -32603, 'INTERNAL', null],
    // Of our own side only: a peer learns no more than that it failed.
    ['config_invalid', 500, -32603, 'INTERNAL', null],
  ] as const)('%s has its status on both bindings', async (code, http, rpcCode, status, retryAfter) => {
    answer = () => {
      throw new HoldfastError(code, 'SELECT * FROM secrets', { data: { presented: 3 } });
    };
    const shown = code === 'config_invalid' ? 'INTERNAL' : code.toUpperCase();
    const byRpc = await rpc(node, 'SendMessage', { message: offerMessage() });
    expect([byRpc.status, byRpc.body.error.code, byRpc.body.id]).toEqual([http, rpcCode, 7]);
    expect(infoOf(byRpc.body.error.data)).toMatchObject({ domain: 'holdfast', reason: shown });
    expect(byRpc.headers.get('retry-after')).toBe(retryAfter);
    const byRest = await rest(node, 'POST', '/message:send', { message: offerMessage() });
    expect([byRest.status, byRest.body.error.code, byRest.body.error.status]).toEqual([http, http, status]);
    expect(infoOf(byRest.body.error.details)).toMatchObject({ domain: 'holdfast', reason: shown });
    expect(byRest.headers.get('retry-after')).toBe(retryAfter);
    expect(JSON.stringify([byRpc.body, byRest.body]).includes('SELECT')).toBe(http < 500);
  });

  test('carry what programs need as metadata and at most three fields', async () => {
    answer = () => {
      const fields = [1, 2, 3, 4].map((index) => ({ path: `facts.${index}`, problem: 'is missing' }));
      throw new HoldfastError('duplicate_conflict', undefined, {
        fields,
        data: { presented: 3, current: 4 },
      });
    };
    const { body } = await rpc(node, 'SendMessage', { message: offerMessage() });
    expect(infoOf(body.error.data)).toMatchObject({ metadata: { presented: '3', current: '4' } });
    expect(body.error.data[1].fieldViolations).toHaveLength(3);
  });

  test('[R-153] an exception shows neither text nor stack to the peer, and is logged without the message', async () => {
    answer = () => {
      throw new TypeError('cannot read password hunter2');
    };
    const found = [
      await rpc(node, 'SendMessage', { message: offerMessage() }),
      await rest(node, 'POST', '/message:send', { message: offerMessage() }),
      await rest(node, 'POST', '/message:stream', { message: offerMessage() }),
      await rpc(node, 'SendStreamingMessage', { message: offerMessage() }),
    ];
    expect(found.map(({ status }) => status)).toEqual([500, 500, 500, 500]);
    for (const { body } of found) expect(JSON.stringify(body)).not.toMatch(/hunter2|TypeError|at /);
    const failures = node.logger.lines.filter(({ level }) => level === 'error');
    expect(failures).toHaveLength(4);
    expect(JSON.stringify(node.logger.lines)).not.toContain('A case is handed over.');
  });
});
