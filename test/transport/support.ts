import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  DEFAULT_LIMITS,
  HoldfastError,
  type JsonObject,
  type JsonValue,
  type Logger,
  newId,
} from '../../src/core/index.js';
import type { EvidenceStore } from '../../src/evidence/index.js';
import type { ControlReceiver, OfferReceiver } from '../../src/handoff/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { EXTENSION_URI, envelopeMediaType, type Message, type Task } from '../../src/protocol/index.js';
import { createMemoryLedger, openEvidenceFiles } from '../../src/storage/index.js';
import {
  buildAgentCard,
  createGuardedFetch,
  createNodeServer,
  type GuardedFetch,
  type NodeServer,
  type NodeServerOptions,
} from '../../src/transport/index.js';
import type { Authenticator, NodeIdentity } from '../../src/trust/index.js';

export const PEER = 'https://triage.example.com';
export const STRANGER = 'https://stranger.example.com';
export const SECRET = new Uint8Array(32).fill(7);

/** In tests of the transport a token is the agent's URL; whether tokens hold is tested where they are made. */
const trustingAuthenticator: Authenticator = {
  authenticate: async (authorization) => {
    const agent = /^Bearer (https?:\/\/\S+)$/.exec(authorization ?? '')?.[1];
    if (agent === undefined) throw new HoldfastError('unauthenticated');
    return { agent, tenant: 'acme', tokenId: 'jti-1' };
  },
};

export function identityOf(url: string): NodeIdentity {
  return {
    url,
    thumbprint: 'none',
    publicKey: {},
    nextThumbprint: null,
    retired: [],
    jwks: () => ({ keys: [] }),
    tokenFor: async () => url,
    signReceipt: async () => 'none',
    sign: async () => 'none',
  };
}

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

function recordingLogger(): Logger & { lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: LogLine['level']) => (fields: LogLine['fields'], message: string) => {
    lines.push({ level, fields, message });
  };
  return { lines, info: at('info'), warn: at('warn'), error: at('error') };
}

/** A receiver that says what it is told to, and keeps what it was given. */
export function scriptedReceiver(
  answer: (message: Message) => Promise<Task> | Task = (message) => acceptedTask(message),
): OfferReceiver & { received: Message[]; peers: string[] } {
  const received: Message[] = [];
  const peers: string[] = [];
  return {
    received,
    peers,
    receive: async (message, principal) => {
      received.push(message);
      peers.push(principal.agent);
      return answer(message);
    },
    answer: () => Promise.reject(new HoldfastError('answer_invalid')),
    untilChanged: async () => undefined,
  };
}

/** Answers control messages with what it is told to. */
export function scriptedControl(
  answer: (message: Message) => Promise<Message> | Message,
): ControlReceiver & { received: Message[]; peers: string[] } {
  const received: Message[] = [];
  const peers: string[] = [];
  return {
    received,
    peers,
    answer: async (message, principal) => {
      received.push(message);
      peers.push(principal.agent);
      return answer(message);
    },
    withdrawTask: async () => undefined,
  };
}

/** Most tests send none. */
const noControl = scriptedControl(() => {
  throw new HoldfastError('verb_unknown');
});

export function acceptedTask(message: Message, id = newId('task')): Task {
  return {
    id,
    contextId: `ctx_${id}`,
    status: { state: 'TASK_STATE_COMPLETED', timestamp: '2026-01-31T10:00:00.000Z' },
    artifacts: [
      {
        artifactId: 'receipt',
        parts: [
          { data: { accepted: true, epoch: 4 }, mediaType: 'application/vnd.holdfast.receipt.v1+json' },
        ],
      },
    ],
    history: [message],
  };
}

export function offerMessage(changes: Partial<Message> = {}): Message {
  return {
    messageId: 'CASE-7001:4:1',
    role: 'ROLE_USER',
    extensions: [EXTENSION_URI],
    parts: [
      { text: 'A case is handed over.' },
      { data: { version: 2, case_id: 'CASE-7001', epoch: 3, none: null }, mediaType: envelopeMediaType(2) },
      {
        url: 'https://triage.example.com/evidence/art_1/1?sig=x',
        mediaType: 'text/plain',
        filename: 'transcript.txt',
        metadata: { sha256: 'a'.repeat(64), bytes: 12, version: 1 },
      },
    ],
    ...changes,
  };
}

export function plainMessage(text = 'Hello', changes: Partial<Message> = {}): Message {
  return { messageId: newId('msg'), role: 'ROLE_USER', parts: [{ text }], ...changes };
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

export interface TestNode {
  readonly url: string;
  readonly port: number;
  readonly ledger: LedgerStore;
  readonly logger: ReturnType<typeof recordingLogger>;
  readonly receiver: ReturnType<typeof scriptedReceiver>;
  readonly evidence: EvidenceStore;
  readonly server: NodeServer;
  close(graceMs?: number): Promise<void>;
}

type Overrides = Partial<Omit<NodeServerOptions, 'receiver' | 'logger' | 'url' | 'guarded'>> & {
  /** Where push notifications may go: nowhere by default. */
  network?: GuardedFetch;
  receiver?: ReturnType<typeof scriptedReceiver>;
  path?: string;
  port?: number;
  /** Where peers know the agent, when it is another process's address. */
  agentUrl?: string;
};

export async function startNode(overrides: Overrides = {}): Promise<TestNode> {
  const {
    path = '',
    port = await freePort(),
    receiver = scriptedReceiver(),
    agentUrl,
    network,
    ...rest
  } = overrides;
  const url = `http://127.0.0.1:${port}${path}`;
  const agent = agentUrl ?? url;
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-transport-'));
  const evidence = await openEvidenceFiles(folder);
  const logger = recordingLogger();
  const ledger = rest.ledger ?? createMemoryLedger();
  const guarded = network ?? createGuardedFetch({ loopback: [] });
  const server = createNodeServer({
    url: agent,
    card: cardFor(agent),
    jwks: () => ({ keys: [{ kty: 'OKP', crv: 'Ed25519', x: 'AAAA' }] }),
    authenticator: trustingAuthenticator,
    receiver,
    control: noControl,
    evidence: { store: evidence, secret: SECRET },
    limits: DEFAULT_LIMITS,
    health: async () => ({ ok: true }),
    guarded,
    onNews: async () => undefined,
    holder: `${agent}#${newId('run')}`,
    ...rest,
    ledger,
    logger,
  });
  await server.listen(port, '127.0.0.1');
  const close = async (graceMs = 50) => {
    await server.close(graceMs);
    await guarded.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { url, port, ledger, logger, receiver, evidence, server, close };
}

export function cardFor(url: string): JsonObject {
  return buildAgentCard({
    name: 'Billing',
    description: 'Decides refunds.',
    url,
    version: '1.0.0',
    skills: [
      {
        id: 'billing',
        name: 'Billing',
        description: 'Takes over refund cases.',
        tags: ['refund'],
        inputModes: [envelopeMediaType(2)],
      },
    ],
    mediaTypes: [envelopeMediaType(2)],
  });
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every form
  readonly body: any;
}

const headersFor = (agent: string | null, extra: Record<string, string>): Record<string, string> => ({
  'content-type': 'application/json',
  'a2a-version': '1.0',
  ...(agent === null ? {} : { authorization: `Bearer ${agent}` }),
  ...extra,
});

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
}

interface RequestOptions {
  agent?: string | null;
  headers?: Record<string, string>;
}

export async function rpc(
  node: TestNode,
  method: string,
  params: unknown,
  { agent = PEER, headers = {} }: RequestOptions = {},
): Promise<Answer> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params });
  return answerOf(
    await fetch(`${node.url}/a2a`, { method: 'POST', headers: headersFor(agent, headers), body }),
  );
}

export async function rest(
  node: TestNode,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: JsonValue | object,
  { agent = PEER, headers = {} }: RequestOptions = {},
): Promise<Answer> {
  return answerOf(
    await fetch(`${node.url}/a2a/rest${path}`, {
      method,
      headers: headersFor(agent, headers),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
}

/** The data of every event of an SSE body. */
export function eventsIn(text: string): Answer['body'][] {
  return text
    .split('\n\n')
    .flatMap((block) => block.split('\n').filter((line) => line.startsWith('data: ')))
    .map((line) => JSON.parse(line.slice(6)));
}

export async function until(condition: () => boolean | Promise<boolean>, limitMs = 2_000): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error('the condition did not come true in time');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
