import { join } from 'node:path';
import { afterEach, expect } from 'vitest';
import * as z from 'zod';
import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import {
  type CaseRef,
  type Contract,
  defineContract,
  type HandoffHandler,
  type Holdfast,
  openHoldfast,
} from '../../src/index.js';
import type { Message, Task } from '../../src/protocol/index.js';
import { freePort, temporaryFolder } from '../cli/support.js';

export const QUERY_WAIT = { timeout: 20_000, interval: 30 };
const PACE = { leaseMs: 1_500, beatMs: 300, sweepMs: 50 } as const;
const afterwards: (() => unknown)[] = [];

afterEach(async () => {
  for (const clean of afterwards.splice(0).reverse()) await clean();
});

/** Without evidence, so that nothing but the offer crosses. */
const QUESTIONED: Contract = defineContract({
  name: 'goodwill',
  version: 1,
  skill: { id: 'goodwill', name: 'Goodwill', description: 'Decides on goodwill.', tags: ['goodwill'] },
  purpose: 'Decide on a goodwill payment.',
  facts: {
    account_id: { schema: z.string().max(20), required: true, why: 'Value: short.' },
    channel: {
      schema: z.enum(['web', 'shop']),
      required: false,
      verified: true,
      sources: ['crm'],
      loggable: true,
      why: 'Value: a code.',
    },
  },
  allow: ['goal', 'done', 'remaining', 'constraints'],
  constraints: { deadline: false, caps: [], prohibitions: [] },
  operations: ['refund'],
  evidence: { min: 0, max: 0, mediaTypes: [], maxBytes: 1 },
  questions: 2,
  codes: { too_generous: 'More than goodwill allows.' },
});

export type Mode = 'shared' | 'separate';

export interface Pair {
  readonly folder: string;
  readonly mode: Mode;
  readonly triage: Holdfast;
  readonly billing: Holdfast;
  /** What billing's check does. */
  handler: HandoffHandler;
  /** Another process of billing, which does not listen. */
  another(): Promise<Holdfast>;
  configOf(name: 'triage' | 'billing'): object;
  advance(ms: number): void;
  ref(caseId?: string): CaseRef;
  /** The bytes of one offer of triage's. */
  offer(caseId?: string, over?: { attempt?: number; acceptInMs?: number; goal?: string }): Message;
  call(method: string, params: object, as?: Holdfast): Promise<Response>;
  /** The result of a call that succeeds. */
  ask(method: string, params: object): Promise<Record<string, never> & { task: Task } & Task>;
  send(message: object, configuration?: object): Promise<Task>;
}

/** Two agents over real HTTP; triage opens `CASE-1` to `CASE-3`. */
export async function startPair(mode: Mode, serves: { billing: boolean } = { billing: true }): Promise<Pair> {
  const { path: folder, remove } = temporaryFolder();
  afterwards.push(remove);
  let aheadMs = 0;
  const clock = { now: () => new Date(Date.now() + aheadMs) };
  const ports = { triage: await freePort(), billing: await freePort() };
  const urlOf = (name: 'triage' | 'billing') => `http://127.0.0.1:${ports[name]}`;
  const keys = { triage: 'x'.repeat(43), billing: 'x'.repeat(43) };
  const configOf = (name: 'triage' | 'billing') => {
    const peer = name === 'triage' ? 'billing' : 'triage';
    return {
      agent: name,
      url: urlOf(name),
      listen: { host: '127.0.0.1', port: ports[name] },
      ledger: join(folder, mode === 'shared' ? 'ledger.db' : `${name}.db`),
      contracts: ['refund-dispute/1'],
      receives: [],
      kinds: { goodwill: { system_of_record: 'payments', mode, contracts: [QUESTIONED.id] } },
      peers: [{ url: urlOf(peer), key: keys[peer], contracts: [QUESTIONED.id], skills: ['goodwill'] }],
      network: { loopback: Object.values(ports).map((port) => `127.0.0.1:${port}`) },
      shutdown: '500ms',
      log: { level: 'silent' },
    };
  };
  for (const name of ['triage', 'billing'] as const) {
    const known = await openHoldfast({ dir: join(folder, name), config: configOf(name) });
    keys[name] = known.identity.thumbprint;
    await known.close();
  }
  const pair: { handler: HandoffHandler } = { handler: {} };
  const open = async (name: 'triage' | 'billing') => {
    const node = await openHoldfast({
      dir: join(folder, name),
      config: configOf(name),
      ports: { clock, pace: PACE },
    });
    afterwards.push(() => node.close());
    if (name === 'billing') {
      node.onHandoff(QUESTIONED, {
        check: (view) => pair.handler.check?.(view) ?? { verdict: 'accept' },
        work: async (work) => pair.handler.work?.(work),
      });
    }
    return node;
  };
  const [triage, billing] = [await open('triage'), await open('billing')];
  await triage.start();
  if (serves.billing) await billing.start();
  for (const caseId of ['CASE-1', 'CASE-2', 'CASE-3']) await triage.openCase({ caseId, kind: 'goodwill' });
  if (serves.billing) await heardEachOther([triage, billing]);
  const incarnation = (await triage.ledger.getIncarnation(triage.url))?.incarnation ?? 'inc_1';

  const call: Pair['call'] = async (method, params, as = triage) =>
    fetch(`${billing.url}/a2a`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'a2a-version': '1.0',
        authorization: `Bearer ${await as.identity.tokenFor(billing.url)}`,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
  const ask: Pair['ask'] = async (method, params) => {
    const body = await bodyOf(await call(method, params));
    expect(body).toHaveProperty('result');
    return body.result;
  };
  return Object.assign(pair, {
    folder,
    mode,
    triage,
    billing,
    another: () => open('billing'),
    configOf,
    advance(ms: number) {
      aheadMs += ms;
    },
    ref: (caseId = 'CASE-1') => triage.caseRef(caseId),
    offer: (caseId = 'CASE-1', over: Parameters<Pair['offer']>[1] = {}) =>
      offerOf({ caseId, from: triage.url, to: billing.url, now: clock.now(), incarnation, ...over }),
    call,
    ask,
    send: async (message: object, configuration: object = {}) =>
      (await ask('SendMessage', { message, configuration })).task,
  });
}

/** With a ledger each, nothing is decided before: what was lost might be decided twice. */
export async function heardEachOther(nodes: readonly Holdfast[]): Promise<void> {
  for (const { ledger, url } of nodes) {
    const waits = async () => (await ledger.listAwaited(url)).some(({ state }) => state === 'waiting');
    await expect.poll(waits, QUERY_WAIT).toBe(false);
  }
}

interface OfferParts {
  caseId: string;
  from: string;
  to: string;
  now: Date;
  incarnation: string;
  attempt?: number;
  acceptInMs?: number;
  goal?: string;
}

function offerOf({
  caseId,
  from,
  to,
  now,
  incarnation,
  attempt = 1,
  acceptInMs = 3_600_000,
  goal = 'Decide',
}: OfferParts): Message {
  const envelope = {
    version: 2,
    root: from,
    incarnation,
    case_id: caseId,
    kind: 'goodwill',
    handoff_id: `${caseId}:2`,
    attempt,
    from_agent: from,
    to_agent: to,
    epoch: 1,
    contract: QUESTIONED.id,
    skill: 'goodwill',
    goal,
    done: [],
    remaining: [],
    facts: [{ key: 'account_id', value: 'acc_1', source: 'crm', verified: true }],
    open_questions: [],
    constraints: { caps: {}, prohibitions: [] },
    summary: { text: 'Goodwill', generated_from: ['goal'] },
    references: [],
    effects: [],
    accept_by: new Date(now.getTime() + acceptInMs).toISOString(),
    chain: { hops: [from], tasks_left: 5 },
    provenance: [],
    trace: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
  };
  return {
    messageId: `${caseId}:2:${attempt}`,
    role: 'ROLE_USER',
    parts: [{ data: envelope, mediaType: 'application/vnd.holdfast.handoff.v2+json' }],
  };
}

export function answerTo(
  { ref }: Pick<Pair, 'ref'>,
  task: Task,
  { n = 1, facts = [CHANNEL], text }: { n?: number; facts?: object[]; text?: string } = {},
  of = 'CASE-1',
): Message {
  const { root, caseId } = ref(of);
  const part = {
    ...{ root, case_id: caseId, handoff_id: `${caseId}:2`, attempt: 1, n, facts },
    ...(text === undefined ? {} : { text }),
  };
  return {
    messageId: `${caseId}:2:1:answer-${n}`,
    role: 'ROLE_USER',
    taskId: task.id,
    parts: [{ data: part as never, mediaType: 'application/vnd.holdfast.answer.v1+json' }],
  };
}

export const CHANNEL = { key: 'channel', value: 'web', source: 'crm', verified: true };

/** The ledger that decides says the same as its audit, and has decided once. */
export async function expectDecidedOnce(
  { billing, ref }: Pair,
  verdict: string,
  caseId?: string,
): Promise<void> {
  const snapshot = await billing.ledger.snapshot(ref(caseId));
  expect(snapshot.decisions.map((decision) => decision.verdict)).toEqual([verdict]);
  expect(snapshot.pending.filter(({ state }) => state !== 'decided')).toEqual([]);
  expect(snapshot.work).toHaveLength(verdict === 'accepted' ? 1 : 0);
  verifyChain(snapshot.audit);
  expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);
}

/** An answer of the JSON-RPC binding. */
export interface Body {
  readonly result: Record<string, never> & { task: Task } & Task;
  readonly error: {
    readonly code: number;
    readonly data: readonly { reason: string; fieldViolations?: readonly { field: string }[] }[];
  };
}

export async function bodyOf(response: Response): Promise<Body> {
  return (await response.json()) as Body;
}

export function partOf(task: Task): Record<string, unknown> {
  return task.artifacts?.[0]?.parts[0]?.data as Record<string, unknown>;
}
