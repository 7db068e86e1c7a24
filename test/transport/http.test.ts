import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../src/core/index.js';
import { expectJson, raw, request } from './raw-http.js';
import {
  cardFor,
  offerMessage,
  PEER,
  plainMessage,
  rest,
  rpc,
  STRANGER,
  startNode,
  type TestNode,
} from './support.js';

let node: TestNode;

beforeAll(async () => {
  node = await startNode();
});

afterAll(() => node.close());

const get = (path: string, headers: Record<string, string> = {}, to = node) =>
  fetch(`${to.url}${path}`, { headers });

describe('public routes', () => {
  test('serve the card as wire JSON, with an ETag that saves sending it again', async () => {
    const first = await get('/.well-known/agent-card.json');
    expect(first.status).toBe(200);
    expect(await first.json()).toEqual(cardFor(node.url));
    expect(first.headers.get('cache-control')).toBe('public, max-age=60');
    const etag = first.headers.get('etag') ?? '';
    const again = await get('/.well-known/agent-card.json', { 'if-none-match': etag });
    expect([again.status, await again.text()]).toEqual([304, '']);
    expect((await get('/.well-known/agent-card.json', { 'if-none-match': '"other"' })).status).toBe(200);
  });

  test('serve the keys and the health', async () => {
    expect(await (await get('/.well-known/jwks.json')).json()).toHaveProperty('keys');
    expect(await (await get('/healthz')).json()).toEqual({ ok: true });
  });

  test('stand below the path of the agent, where it has one', async () => {
    const below = await startNode({ path: '/agents/billing' });
    expect((await get('/.well-known/agent-card.json', {}, below)).status).toBe(200);
    const root = `http://127.0.0.1:${below.port}/.well-known/agent-card.json`;
    expect((await fetch(root)).status).toBe(401);
    expect((await rpc(below, 'SendMessage', { message: plainMessage() })).body.result.task.id).toBeTruthy();
    expect((await rest(below, 'POST', '/message:send', { message: plainMessage() })).status).toBe(200);
    await below.close();
  });
});

describe('authentication', () => {
  test.each([
    ['no token', {}],
    ['a bad token', { authorization: 'Bearer nonsense' }],
    ['another scheme', { authorization: `Basic ${PEER}` }],
  ])(
    'with %s every route of A2A is a 401 with a challenge, and nothing of the request is looked at',
    async (_n, headers) => {
      const send = (path: string, method = 'POST', body: string | null = '{broken') =>
        fetch(`${node.url}${path}`, { method, headers, body });
      const answers = [
        await send('/a2a'),
        await send('/a2a/rest/message:send'),
        await send('/a2a/rest/tasks/x', 'GET', null),
        await send('/evidence/art/1', 'GET', null),
        await send('/nothing', 'GET', null),
      ];
      for (const answer of answers) {
        expect(answer.status).toBe(401);
        expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="holdfast"');
        expect(JSON.stringify(await answer.json())).toContain('"UNAUTHENTICATED"');
      }
    },
  );

  test('the body of a 401 has the form of its binding', async () => {
    const byRpc = await rpc(node, 'SendMessage', {}, { agent: null });
    expect(byRpc.body).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32600 } });
    const byRest = await rest(node, 'GET', '/tasks', undefined, { agent: null });
    expect(byRest.body).toMatchObject({ error: { code: 401, status: 'UNAUTHENTICATED' } });
  });

  test('a peer that asks too often is told to wait; others are not', async () => {
    const limited = await startNode({ limits: { ...DEFAULT_LIMITS, peerRequestsPerMinute: 3 } });
    const statuses: number[] = [];
    for (let index = 0; index < 5; index += 1) statuses.push((await rpc(limited, 'ListTasks', {})).status);
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
    const byRest = await rest(limited, 'GET', '/tasks');
    expect([byRest.status, byRest.headers.get('retry-after')]).toEqual([429, '1']);
    expect(byRest.body.error.details[0].reason).toBe('RATE_LIMITED');
    expect((await rpc(limited, 'ListTasks', {}, { agent: STRANGER })).status).toBe(200);
    await limited.close();
  });
});

describe('protocol version', () => {
  const withVersion = async (version: string | null, query = '') => {
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      authorization: `Bearer ${PEER}`,
    };
    if (version !== null) headers['a2a-version'] = version;
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {} });
    const byRpc = await fetch(`${node.url}/a2a${query}`, { method: 'POST', headers, body });
    const byRest = await get(`/a2a/rest/tasks${query}`, headers);
    return [((await byRpc.json()) as { error?: { code: number } }).error?.code ?? 'ok', byRest.status];
  };

  test.each(['1.0', '1.0.0', '1.0.7', ' 1.0 '])('%j is spoken', async (version) => {
    expect(await withVersion(version)).toEqual(['ok', 200]);
  });

  test.each(['0.3', '0.3.0', '1', '1.1', '2.0', '1.0.x', '1.00', 'latest', '', null])(
    '%j is not',
    async (version) => {
      expect(await withVersion(version)).toEqual([-32009, 400]);
    },
  );

  test('may be given in the query where there is no header', async () => {
    expect(await withVersion(null, '?A2A-Version=1.0')).toEqual(['ok', 200]);
    expect(await withVersion('', '?A2A-Version=1.0.3')).toEqual(['ok', 200]);
    expect(await withVersion(null, '?A2A-Version=0.3')).toEqual([-32009, 400]);
    expect(await withVersion('0.3', '?A2A-Version=1.0')).toEqual([-32009, 400]);
  });
});

describe('bodies', () => {
  const post = (
    path: string,
    body: string | Uint8Array,
    type = 'application/json',
    more: Record<string, string> = {},
  ) =>
    fetch(`${node.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${PEER}`, 'a2a-version': '1.0', 'content-type': type, ...more },
      body,
    });

  test('of a mebibyte are read, and larger ones are refused in JSON, declared or not', async () => {
    const parts = [1, 2, 3].map(() => ({ text: 'x'.repeat(250_000) }));
    expect((await rest(node, 'POST', '/message:send', { message: plainMessage('', { parts }) })).status).toBe(
      200,
    );
    const before = (await rpc(node, 'ListTasks', {})).body.result.totalSize;
    const large = JSON.stringify({ message: plainMessage('x'.repeat(1_100_000)) });
    for (const path of ['/a2a', '/a2a/rest/message:send']) {
      const declared = await post(path, large);
      expect(declared.status).toBe(413);
      expect(JSON.stringify(await declared.json())).toContain('BODY_TOO_LARGE');
    }
    const size = (large.length + 2).toString(16);
    const chunked = await raw(
      node,
      `POST /a2a HTTP/1.1\r\nHost: 127.0.0.1:${node.port}\r\nAuthorization: Bearer ${PEER}\r\nA2A-Version: 1.0\r\n` +
        `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${size}\r\n${large}  \r\n0\r\n\r\n`,
    );
    expectJson(chunked, 413);
    expect((await rpc(node, 'ListTasks', {})).body.result.totalSize).toBe(before);
  });

  test.each([
    ['broken', '{"jsonrpc":', -32700],
    ['not UTF-8', new Uint8Array([0x7b, 0xff, 0x7d]), -32700],
    ['with a key twice', '{"jsonrpc":"2.0","id":1,"id":2,"method":"ListTasks"}', -32700],
    [
      'with a prototype key',
      '{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"__proto__":{}}}',
      -32700,
    ],
    ['too deep', `${'['.repeat(100_000)}`, -32600],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}]', -32600],
    ['a string', '"ListTasks"', -32600],
    ['empty', '', -32600],
    ['of another version', '{"jsonrpc":"1.0","id":1,"method":"ListTasks","params":{}}', -32600],
    ['without a method', '{"jsonrpc":"2.0","id":1,"params":{}}', -32600],
    ['with a strange id', '{"jsonrpc":"2.0","id":{},"method":"ListTasks","params":{}}', -32600],
    ['a notification', '{"jsonrpc":"2.0","method":"ListTasks","params":{}}', -32600],
    ['with params that are a list', '{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":[]}', -32602],
    ['without params', '{"jsonrpc":"2.0","id":1,"method":"GetTask"}', -32602],
    ['without a message', '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}', -32602],
  ])('that are %s are refused', async (_what, body, code) => {
    const answer = await post('/a2a', body);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(await answer.json()).toMatchObject({ jsonrpc: '2.0', error: { code } });
  });

  test('HTTP+JSON refuses them as well', async () => {
    for (const body of ['{"message":', '[]', '"x"', '', '{"message":{},"message":{}}', '{"message":null}']) {
      const answer = await post('/a2a/rest/message:send', body);
      expect(answer.status, body).toBe(400);
      expect(answer.headers.get('content-type')).toBe('application/a2a+json');
      expect(await answer.json()).toMatchObject({ error: { code: 400, status: 'INVALID_ARGUMENT' } });
    }
  });

  test("have one of the protocol's media types, and no encoding", async () => {
    const message = JSON.stringify({ message: plainMessage() });
    for (const type of ['application/json; charset=utf-8', 'application/a2a+json', 'APPLICATION/JSON']) {
      expect((await post('/a2a/rest/message:send', message, type)).status, type).toBe(200);
    }
    for (const type of [
      'text/plain',
      'application/jsonp',
      'application/json garbage',
      'application/xml',
      'x',
    ]) {
      const answer = await post('/a2a/rest/message:send', message, type);
      expect(
        [answer.status, JSON.stringify(await answer.json()).includes('CONTENT_TYPE_NOT_SUPPORTED')],
        type,
      ).toEqual([400, true]);
      const byRpc = await post('/a2a', message, type);
      expect(await byRpc.json()).toMatchObject({ error: { code: -32005 } });
    }
    const encoded = await post('/a2a/rest/message:send', message, 'application/json', {
      'content-encoding': 'gzip',
    });
    expect(encoded.status).toBe(400);
  });

  test("with parameters no codec can read are the sender's mistake, told without our internals", async () => {
    const byRpc = await rpc(node, 'SendMessage', {
      message: plainMessage(),
      configuration: { taskPushNotificationConfig: { authentication: 5, url: [] } },
    });
    expect(byRpc.body.error.code).toBe(-32602);
    for (const historyLength of [-1, 'x', 1.5, {}]) {
      const found = await rpc(node, 'SendMessage', {
        message: plainMessage(),
        configuration: { historyLength },
      });
      expect(found.body.error.code).toBe(-32602);
    }
  });
});

describe('what Node lets pass', () => {
  const host = () => `Host: 127.0.0.1:${node.port}`;
  const card = '/.well-known/agent-card.json';

  test('an ordinary request is answered', async () => {
    expectJson(await raw(node, request(`GET ${card} HTTP/1.1`, host())), 200);
  });

  test.each([
    ['two Host headers', (own: string) => request(`GET ${card} HTTP/1.1`, own, 'Host: evil.example')],
    ['a foreign Host', () => request(`GET ${card} HTTP/1.1`, 'Host: evil.example')],
    ['no Host', () => request(`GET ${card} HTTP/1.1`)],
    ['HTTP/1.0 without a Host', () => request(`GET ${card} HTTP/1.0`)],
    ['the absolute form', (own: string) => request(`GET http://evil.example${card} HTTP/1.1`, own)],
    [
      'two Authorization headers',
      (own: string) =>
        request(
          `GET /a2a/rest/tasks HTTP/1.1`,
          own,
          `Authorization: Bearer ${PEER}`,
          `Authorization: Bearer ${STRANGER}`,
        ),
    ],
    [
      'two Content-Types',
      (own: string) =>
        request(
          'POST /a2a HTTP/1.1',
          own,
          'Content-Type: application/json',
          'Content-Type: text/html',
          'Content-Length: 0',
        ),
    ],
    [
      'many headers',
      (own: string) =>
        request(`GET ${card} HTTP/1.1`, own, ...Array.from({ length: 101 }, (_, index) => `X-${index}: 1`)),
    ],
    ['a double slash', (own: string) => request(`GET /${card} HTTP/1.1`, own)],
    ['a dot segment', (own: string) => request(`GET /x/..${card} HTTP/1.1`, own)],
    ['an encoded dot segment', (own: string) => request(`GET /x/%2e%2e${card} HTTP/1.1`, own)],
    ['a doubly encoded path', (own: string) => request('GET /%252e HTTP/1.1', own)],
    ['an encoded NUL', (own: string) => request('GET /a%00b HTTP/1.1', own)],
    ['a broken encoding', (own: string) => request('GET /%zz HTTP/1.1', own)],
    ['a backslash', (own: string) => request('GET /a\\b HTTP/1.1', own)],
    ['no HTTP at all', () => 'hello\r\n\r\n'],
    [
      'both lengths',
      (own: string) => request('POST /a2a HTTP/1.1', own, 'Content-Length: 3', 'Transfer-Encoding: chunked'),
    ],
    ['a bad length', (own: string) => request('POST /a2a HTTP/1.1', own, 'Content-Length: -1')],
  ])('%s is refused in JSON', async (_what, build) => {
    expectJson(await raw(node, build(host())), 400);
  });

  test('headers beyond their limit are a 431, in JSON', async () => {
    expectJson(await raw(node, request(`GET ${card} HTTP/1.1`, host(), `X: ${'a'.repeat(20_000)}`)), 431);
  });

  test('an encoded path meets the same rules as the plain one', async () => {
    expectJson(await raw(node, request('GET /a2a/rest/t%61sks HTTP/1.1', host())), 401);
    const admitted = request(
      'GET /a2a/rest/t%61sks HTTP/1.1',
      host(),
      `Authorization: Bearer ${PEER}`,
      'A2A-Version: 1.0',
    );
    expectJson(await raw(node, admitted), 200);
    const body = JSON.stringify({ message: offerMessage() });
    const encoded = await fetch(`${node.url}/a2a/rest/message%3Asend`, {
      method: 'POST',
      headers: { authorization: `Bearer ${PEER}`, 'a2a-version': '1.0', 'content-type': 'application/json' },
      body,
    });
    expect(encoded.status).toBe(200);
    expect(node.receiver.received.at(-1)?.messageId).toBe('CASE-7001:4:1');
  });
});
