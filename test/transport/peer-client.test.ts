import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import {
  DEFAULT_LIMITS,
  HoldfastError,
  isHoldfastError,
  type JsonObject,
  type Limits,
} from '../../src/core/index.js';
import type { PeerClient } from '../../src/handoff/index.js';
import {
  CONTROL_MEDIA_TYPE,
  type ControlAnswer,
  controlMessage,
  EXTENSION_URI,
  type Task,
} from '../../src/protocol/index.js';
import { createGuardedFetch, createPeerClient } from '../../src/transport/index.js';
import {
  acceptedTask,
  cardFor,
  identityOf,
  offerMessage,
  PEER,
  scriptedControl,
  scriptedReceiver,
  startNode,
} from './support.js';

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function clientFor(url: string, limits: Partial<Limits> = {}): PeerClient {
  const guarded = createGuardedFetch({ loopback: [new URL(url).host] });
  closers.push(() => guarded.close());
  return createPeerClient({ guarded, identity: identityOf(PEER), limits: { ...DEFAULT_LIMITS, ...limits } });
}

interface FakePeer {
  readonly url: string;
  readonly requests: { url: string; headers: IncomingMessage['headers']; body: string }[];
}

type Answer = (response: ServerResponse, body: string, request: IncomingMessage) => void;

/** A peer of which tests decide every byte; by default its card is a good one. */
async function fakePeer(onMessage: Answer, onCard?: (url: string) => Answer): Promise<FakePeer> {
  const requests: FakePeer['requests'] = [];
  let url = '';
  const listener: RequestListener = async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    requests.push({ url: request.url ?? '', headers: request.headers, body });
    const isCard = request.url === '/.well-known/agent-card.json';
    if (!isCard) onMessage(response, body, request);
    else if (onCard === undefined) response.end(JSON.stringify(cardFor(url)));
    else onCard(url)(response, body, request);
  };
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, requests };
}

async function failure(work: Promise<unknown>): Promise<{ code: string; [key: string]: unknown }> {
  const error = await work.then(
    () => expect.fail('did not fail'),
    (thrown: unknown) => thrown,
  );
  if (!isHoldfastError(error)) throw error;
  return { code: error.code, ...error.data };
}

const OFFER = JSON.stringify(offerMessage());
const result = (response: ServerResponse, body: string, value: unknown) =>
  response.end(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, result: value }));

describe('send', () => {
  test('[R-045][R-092] puts exactly the message on the wire, as one blocking SendMessage of A2A 1.0', async () => {
    const task = acceptedTask(offerMessage(), 'task_1');
    const peer = await fakePeer((response, body) => result(response, body, { task }));
    expect(await clientFor(peer.url).send(peer.url, OFFER)).toEqual(task);
    const sent = peer.requests.at(-1);
    expect(sent?.url).toBe('/a2a');
    const wire = JSON.parse(sent?.body ?? '');
    expect(wire.method).toBe('SendMessage');
    expect(wire.params.message).toEqual(JSON.parse(OFFER));
    expect(wire.params.message).not.toHaveProperty('contextId');
    expect(wire.params.configuration?.returnImmediately ?? false).toBe(false);
    expect(sent?.headers).toMatchObject({
      authorization: `Bearer ${PEER}`,
      'a2a-version': '1.0',
      'a2a-extensions': EXTENSION_URI,
      'accept-encoding': 'identity',
    });
  });

  test('refuses a message that would not cross as it is written', async () => {
    const peer = await fakePeer((response) => response.end());
    for (const message of [
      { ...offerMessage(), unknown: 1 },
      { ...offerMessage(), parts: [{ text: 'a', data: {} }] },
      { ...offerMessage(), extensions: [] },
    ]) {
      const found = await failure(clientFor(peer.url).send(peer.url, JSON.stringify(message)));
      expect(found.code).toBe('message_invalid');
    }
    expect(peer.requests).toEqual([]);
  });

  test('[R-092] hands over to a node of ours, and gets the same task for the same bytes', async () => {
    const node = await startNode({
      receiver: scriptedReceiver((message) => acceptedTask(message, 'task_2')),
    });
    closers.push(() => node.close());
    const client = clientFor(node.url);
    const first = await client.send(node.url, OFFER);
    expect(first).toEqual(acceptedTask(offerMessage(), 'task_2'));
    expect(await client.send(node.url, OFFER)).toEqual(first);
    expect(node.receiver.peers).toEqual([PEER, PEER]);
  });

  test('[R-106][R-107] a REJECTED task comes back as what it is', async () => {
    const task: Task = {
      id: 'task_3',
      contextId: 'ctx',
      status: { state: 'TASK_STATE_REJECTED', timestamp: '2026-01-31T10:00:00.000Z' },
      artifacts: [{ artifactId: 'rejection', parts: [{ data: { code: 'epoch_stale', final: true } }] }],
    };
    const peer = await fakePeer((response, body) => result(response, body, { task }));
    const found = await clientFor(peer.url).send(peer.url, OFFER);
    expect(found.status.state).toBe('TASK_STATE_REJECTED');
    expect(found.artifacts).toEqual(task.artifacts);
  });
});

describe('what came back', () => {
  const broken: Record<string, (response: ServerResponse, body: string) => void> = {
    'a message': (response, body) =>
      result(response, body, { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'ok' }] } }),
    'no payload': (response, body) => result(response, body, {}),
    'a task without an id': (response, body) =>
      result(response, body, { task: { status: { state: 'TASK_STATE_COMPLETED' } } }),
    'a task without a status': (response, body) => result(response, body, { task: { id: 'x' } }),
    'a task in no known state': (response, body) =>
      result(response, body, { task: { id: 'x', status: { state: 'DONE' } } }),
    'a task of rubbish': (response, body) =>
      result(response, body, {
        task: { id: 'x', status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [null] },
      }),
    'another id': (response) => response.end('{"jsonrpc":"2.0","id":99,"result":{"task":{"id":"x"}}}'),
    'no JSON-RPC': (response) => response.end('{"task":{}}'),
    'a list': (response) => response.end('[]'),
    HTML: (response) => response.end('<html>accepted</html>'),
    'a key twice': (response) => response.end('{"jsonrpc":"2.0","jsonrpc":"2.0"}'),
    nothing: (response) => response.end(),
    'too much': (response) => response.end(`{"a":"${'x'.repeat(3_000_000)}"}`),
    'a redirect': (response) => response.writeHead(307, { location: 'http://169.254.169.254/' }).end(),
    gzip: (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
    'a 500 in HTML': (response) => response.writeHead(500).end('<html>'),
    'a 404': (response) => response.writeHead(404).end('{}'),
  };

  test.each(Object.entries(broken))(
    '%s is an error of the peer that decides nothing',
    async (_what, answer) => {
      const peer = await fakePeer(answer);
      expect((await failure(clientFor(peer.url).send(peer.url, OFFER))).code).toBe('peer_error');
    },
  );

  test('an error of ours keeps its reason, whatever HTTP status it comes with', async () => {
    const details = (domain: string) => [
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'EFFECT_IN_FLIGHT', domain },
    ];
    for (const status of [200, 409, 503]) {
      const error = { code: -32603, message: 'x', data: details('holdfast') };
      const peer = await fakePeer((response, body) =>
        response.writeHead(status).end(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, error })),
      );
      expect(await failure(clientFor(peer.url).send(peer.url, OFFER))).toMatchObject({
        code: 'peer_error',
        reason: 'EFFECT_IN_FLIGHT',
      });
    }
    const foreign = await fakePeer((response, body) => {
      const error = { code: -32603, message: 'x', data: details('example.com') };
      response.end(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, error }));
    });
    expect(await failure(clientFor(foreign.url).send(foreign.url, OFFER))).toEqual({ code: 'peer_error' });
  });

  test('the reasons that a node of ours gives arrive', async () => {
    const answers = ['busy', 'effect_in_flight', 'duplicate_conflict', 'message_invalid'] as const;
    let next = 0;
    const node = await startNode({
      receiver: scriptedReceiver(() => {
        throw new HoldfastError(answers[next++] ?? 'internal');
      }),
    });
    closers.push(() => node.close());
    const client = clientFor(node.url);
    for (const code of answers) {
      const found = await failure(client.send(node.url, OFFER));
      expect(found).toMatchObject({ code: 'peer_error', reason: code.toUpperCase() });
    }
  });

  test('a 401 means that the peer does not know us', async () => {
    const peer = await fakePeer((response) => response.writeHead(401).end('no'));
    expect((await failure(clientFor(peer.url).send(peer.url, OFFER))).code).toBe('unauthenticated');
  });
});

describe('a control message', () => {
  const query = { verb: 'handoff.query', root: PEER, handoff_id: 'CASE-7001:4', attempt: 1 } as const;
  const ofCase = { verb: 'handoff.query', root: PEER, case_id: 'CASE-7001' } as const;
  const withdraw = { ...query, verb: 'handoff.withdraw' } as const;
  const decision = {
    handoff_id: 'CASE-7001:4',
    attempt: 1,
    verdict: 'rejected',
    decided_at: '2026-01-31T10:00:00.000Z',
    digest: 'a'.repeat(64),
    task_id: 'task_1',
    answer: { accepted: false, none: null },
  } as const;
  const decided = { ...query, state: 'decided', decision } as const;

  test('[R-088][R-090] is one part with one document, and so is its answer', async () => {
    const answers: ControlAnswer[] = [
      decided,
      { ...query, state: 'none' },
      { ...query, state: 'deciding' },
      { ...withdraw, state: 'decided', decision },
      { ...ofCase, decisions: [decision, decision], more: true },
    ];
    const left = [...answers];
    const control = scriptedControl(() => controlMessage(left.shift() as ControlAnswer, 'ROLE_AGENT'));
    const node = await startNode({ control });
    closers.push(() => node.close());
    const client = clientFor(node.url);
    const found: ControlAnswer[] = [];
    for (const request of [query, query, query, withdraw, ofCase]) {
      found.push(await client.control<typeof request>(node.url, request));
    }
    expect(found).toEqual(answers);
    expect(control.peers).toEqual(Array(5).fill(PEER));
    expect(control.received[3]).toMatchObject({
      role: 'ROLE_USER',
      extensions: [EXTENSION_URI],
      parts: [{ data: withdraw, mediaType: CONTROL_MEDIA_TYPE }],
    });
    expect(control.received[0]).not.toHaveProperty('contextId');
    expect(new Set(control.received.map(({ messageId }) => messageId)).size).toBe(5);
  });

  const message = (data: unknown) => controlMessage(data as ControlAnswer, 'ROLE_AGENT');
  const part = { data: decided, mediaType: CONTROL_MEDIA_TYPE };
  const broken: Record<string, object> = {
    'a task': { task: acceptedTask(offerMessage()) },
    'no part': { message: { ...message(decided), parts: [] } },
    'two parts': { message: { ...message(decided), parts: [part, part] } },
    'another media type': { message: { ...message(decided), parts: [{ ...part, mediaType: 'text/json' }] } },
    'a text part': { message: { ...message(decided), parts: [{ text: JSON.stringify(decided) }] } },
    'a list': { message: message([decided]) },
    'another verb': { message: message({ ...decided, verb: 'handoff.withdraw' }) },
    'another root': { message: message({ ...decided, root: 'https://other.example' }) },
    'another handoff': { message: message({ ...decided, handoff_id: 'CASE-7001:5' }) },
    'another attempt': { message: message({ ...decided, attempt: 2 }) },
    'a decision on another attempt': {
      message: message({ ...decided, decision: { ...decision, attempt: 2 } }),
    },
    'an unknown state': { message: message({ ...query, state: 'accepted' }) },
    'no decision': { message: message({ ...query, state: 'decided' }) },
    'a decision on nothing decided': { message: message({ ...query, state: 'none', decision }) },
    'an unknown field': { message: message({ ...decided, owner: PEER }) },
    'an unknown field of a decision': {
      message: message({ ...decided, decision: { ...decision, owner: PEER } }),
    },
    'an unknown verdict': { message: message({ ...decided, decision: { ...decision, verdict: 'open' } }) },
    'no time': { message: message({ ...decided, decision: { ...decision, decided_at: 'yesterday' } }) },
    'a digest that is none': { message: message({ ...decided, decision: { ...decision, digest: 'x' } }) },
    'no answer': { message: message({ ...decided, decision: { ...decision, answer: 'yes' } }) },
    'rubbish parts': { message: { ...message(decided), parts: [null] } },
    nothing: {},
  };

  test.each(Object.entries(broken))('%s as an answer decides nothing', async (_what, answer) => {
    const peer = await fakePeer((response, body) => result(response, body, answer));
    expect((await failure(clientFor(peer.url).control(peer.url, query))).code).toBe('peer_error');
  });

  test('a withdrawal is closed by a decision and by nothing else', async () => {
    for (const state of ['none', 'deciding']) {
      const peer = await fakePeer((response, body) =>
        result(response, body, { message: message({ ...withdraw, state }) }),
      );
      expect((await failure(clientFor(peer.url).control(peer.url, withdraw))).code).toBe('peer_error');
    }
  });

  test('an answer about a case holds a bounded number of decisions, each of the known form', async () => {
    for (const decisions of [Array(11).fill(decision), [{}], [null], 'none']) {
      const peer = await fakePeer((response, body) =>
        result(response, body, { message: message({ ...ofCase, decisions, more: false }) }),
      );
      expect((await failure(clientFor(peer.url).control(peer.url, ofCase))).code).toBe('peer_error');
    }
  });

  test('[R-096] a time-out means unknown; nobody there, that nothing was sent', async () => {
    const silent = await fakePeer(() => undefined);
    const client = clientFor(silent.url, { peerTimeoutMs: 150 });
    expect((await failure(client.control(silent.url, withdraw))).code).toBe('outcome_unknown');
    const gone = await fakePeer(() => undefined);
    await (closers.pop() as () => unknown)();
    expect((await failure(clientFor(gone.url).control(gone.url, query))).code).toBe('peer_unreachable');
  });

  test('[R-096] the time that a node of ours takes too much is unknown as well', async () => {
    const control = scriptedControl(() => {
      throw new HoldfastError('outcome_unknown', 'deep inside');
    });
    const node = await startNode({ control });
    closers.push(() => node.close());
    expect(await failure(clientFor(node.url).control(node.url, query))).toMatchObject({
      code: 'peer_error',
      status: 504,
      reason: 'OUTCOME_UNKNOWN',
    });
  });
});

describe('what did not come back', () => {
  test('a reset or silence after the bytes left is in doubt', async () => {
    const resetting = await fakePeer((response) => response.destroy());
    expect((await failure(clientFor(resetting.url).send(resetting.url, OFFER))).code).toBe('outcome_unknown');
    const silent = await fakePeer(() => undefined);
    const client = clientFor(silent.url, { peerTimeoutMs: 150 });
    expect((await failure(client.send(silent.url, OFFER))).code).toBe('outcome_unknown');
    const half = await fakePeer((response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{"jsonrpc"');
      setTimeout(() => response.destroy(), 10);
    });
    expect((await failure(clientFor(half.url).send(half.url, OFFER))).code).toBe('outcome_unknown');
  });

  test('nobody there, or a card that never comes, means that nothing was sent', async () => {
    const gone = await fakePeer(() => undefined);
    await (closers.pop() as () => unknown)();
    expect((await failure(clientFor(gone.url).send(gone.url, OFFER))).code).toBe('peer_unreachable');
    const slow = await fakePeer(
      () => undefined,
      () => () => undefined,
    );
    const client = clientFor(slow.url, { peerTimeoutMs: 100 });
    expect((await failure(client.send(slow.url, OFFER))).code).toBe('peer_unreachable');
    expect((await failure(client.card(slow.url))).code).toBe('peer_unreachable');
  });

  test('a peer that is not where the configuration allows is not asked', async () => {
    const peer = await fakePeer((response) => response.end());
    const client = clientFor('http://127.0.0.1:9');
    expect((await failure(client.send(peer.url, OFFER))).code).toBe('url_forbidden');
    expect(peer.requests).toEqual([]);
  });
});

describe('the card', () => {
  const serving =
    (change: (card: JsonObject, url: string) => unknown) => (url: string) => (response: ServerResponse) =>
      response.end(JSON.stringify(change(cardFor(url), url)));

  test('is the JSON that the peer serves', async () => {
    const peer = await fakePeer(() => undefined);
    expect(await clientFor(peer.url).card(peer.url)).toEqual(cardFor(peer.url));
  });

  test.each<[string, (card: JsonObject, url: string) => unknown]>([
    [
      'names another origin',
      (card) => ({
        ...card,
        supportedInterfaces: [
          { url: 'http://127.0.0.1:1/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        ],
      }),
    ],
    [
      'names no URL',
      (card) => ({
        ...card,
        supportedInterfaces: [{ url: 7, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
      }),
    ],
    [
      'speaks only 0.3',
      (card, url) => ({
        ...card,
        supportedInterfaces: [{ url: `${url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' }],
      }),
    ],
    [
      'has no JSON-RPC',
      (card, url) => ({
        ...card,
        supportedInterfaces: [{ url: `${url}/a2a`, protocolBinding: 'GRPC', protocolVersion: '1.0' }],
      }),
    ],
    ['lists rubbish', (card) => ({ ...card, supportedInterfaces: [null, 'x', []] })],
    ['is a list', () => []],
  ])('that %s is an error of the peer, and nothing is sent', async (_what, change) => {
    const peer = await fakePeer((response) => response.end(), serving(change));
    expect((await failure(clientFor(peer.url).send(peer.url, OFFER))).code).toBe('peer_error');
    expect(peer.requests.map(({ url }) => url)).toEqual(['/.well-known/agent-card.json']);
  });

  test('is kept while it is fresh, then asked for by its ETag', async () => {
    const answers: number[] = [];
    const peer = await fakePeer(
      () => undefined,
      (url) => (response, _body, request) => {
        response.setHeader('etag', '"v1"');
        response.setHeader('cache-control', answers.length === 0 ? 'max-age=0' : 'max-age=60');
        const known = request.headers['if-none-match'] === '"v1"';
        answers.push(known ? 304 : 200);
        response.writeHead(known ? 304 : 200).end(known ? '' : JSON.stringify(cardFor(url)));
      },
    );
    const client = clientFor(peer.url);
    for (let index = 0; index < 4; index += 1) expect(await client.card(peer.url)).toEqual(cardFor(peer.url));
    expect(answers).toEqual([200, 304]);
  });
});
