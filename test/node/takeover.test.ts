import { type ChildProcess, fork } from 'node:child_process';
import { on, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import { type CaseRef, type Holdfast, openHoldfast, parseCaseFile } from '../../src/index.js';
import { type Agent, CASE_FILE, CONTRACT, initPair, temporaryFolder } from '../cli/support.js';
import { type LossyProxy, lossyProxy } from '../lossy-proxy.js';

/** Runs what is in `dist/`; `npm test` builds first. */
const DOOMED = join(import.meta.dirname, 'doomed.mjs');
const PACE = {
  leaseMs: 1_500,
  beatMs: 300,
  sweepMs: 100,
  elsewhereMs: 1_000,
  offerBackoffMs: [50, 200],
} as const;
const LIMIT_MS = 60_000;
const WAIT = { timeout: 20_000, interval: 50 };

let folder: ReturnType<typeof temporaryFolder>;
let triage: Agent;
let billing: Agent;
let proxy: LossyProxy;
/** The process of billing's that the proxy leads to. */
let target: number;
let opened: Holdfast[];
let children: ChildProcess[];
/** What each said, from the first word on: two messages that come at once are two. */
const said = new WeakMap<ChildProcess, ReturnType<typeof on>>();
let worked: string[];

beforeEach(async () => {
  folder = temporaryFolder();
  ({ triage, billing } = await initPair(folder.path));
  opened = [];
  children = [];
  worked = [];
  target = 0;
  proxy = await lossyProxy(billing.port, () => target);
});

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(opened.map((holdfast) => holdfast.close()));
  proxy.close();
  folder.remove();
});

async function open(agent: Agent, pace: object = PACE): Promise<Holdfast> {
  const holdfast = await openHoldfast({ dir: agent.dir, ports: { pace } });
  opened.push(holdfast);
  return holdfast;
}

/** A process of billing's, in this one, that does the work of what it accepts. */
async function startBilling(pace: object = PACE): Promise<Holdfast> {
  const holdfast = await open(billing, pace);
  holdfast.onHandoff(CONTRACT, {
    work: async (work) => {
      worked.push(work.ref.caseId);
      await work.done({ decision: 'refunded' });
    },
  });
  target = (await holdfast.start({ port: 0 })).port;
  return holdfast;
}

function doom(faults: string | null, ...args: string[]): ChildProcess {
  const { HOLDFAST_FAULTS: _, ...env } = process.env;
  const child = fork(DOOMED, args, {
    env: faults === null ? env : { ...env, HOLDFAST_FAULTS: faults },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  children.push(child);
  said.set(child, on(child, 'message', { close: ['exit'] }));
  return child;
}

async function told(child: ChildProcess, name: string): Promise<unknown> {
  for (;;) {
    const next = await said.get(child)?.next();
    if (next === undefined || next.done) throw new Error(`the process ended before it said ${name}`);
    const [message] = next.value;
    if (message[name] !== undefined) return message[name];
  }
}

async function input(holdfast: Holdfast, caseId: string) {
  const { ref } = await holdfast.openCase({ caseId, kind: 'refund' });
  const { artifactId } = await holdfast.addEvidence(Buffer.from('charged twice'), {
    filename: 'claim.txt',
    mediaType: 'text/plain',
  });
  const source = JSON.parse(readFileSync(CASE_FILE, 'utf8'));
  const caseFile = parseCaseFile(Buffer.from(JSON.stringify({ ...source, case_id: caseId })));
  return { ref, caseFile, to: billing.url, contract: CONTRACT, evidence: [{ artifactId }] };
}

/** Waits until the case is billing's and its work is done, and sees that all of it happened once. */
async function expectFinished(holdfast: Holdfast, caseId: string): Promise<void> {
  const ref: CaseRef = { tenant: 'default', root: triage.url, caseId };
  const work = async () => (await holdfast.ledger.snapshot(ref)).work.map(({ state }) => state);
  await expect.poll(work, WAIT).toEqual(['done']);
  const snapshot = await holdfast.ledger.snapshot(ref);
  expect(snapshot.case).toMatchObject({ owner: billing.url, epoch: 2 });
  expect(snapshot.offers.map(({ key, state }) => [key.attempt, state])).toEqual([[1, 'accepted']]);
  expect(snapshot.decisions).toHaveLength(1);
  expect(verifyChain(snapshot.audit)).toMatchObject({ ok: true });
  expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);
}

describe('another process of the agent takes over', () => {
  it.each([
    'S2.after_commit',
    'S3.before_mark',
    'S3.after_mark',
    'S4.before_send',
    'S5.before_read',
    'S5.after_read',
    'S6.before_commit',
  ])(
    '[R-085][R-088] from a sender that dies at %s',
    async (point) => {
      await startBilling();
      const child = doom(`${point}=kill9`, 'send', triage.dir, billing.url, 'CASE-1');
      expect((await once(child, 'exit'))[1]).toBe('SIGKILL');
      const other = await open(triage);
      await other.start();
      await expectFinished(other, 'CASE-1');
    },
    LIMIT_MS,
  );

  it.each([
    'R1.received',
    'R2.after_checks',
    'R3.before_commit',
    'R3.after_commit',
    'R4.before_answer',
    'R5.before_work',
    'R6.before_commit',
  ])(
    '[R-085][R-088] from a receiver that dies at %s',
    async (point) => {
      const standing = await open(triage);
      await standing.start();
      const child = doom(`${point}=kill9`, 'receive', billing.dir, '0');
      target = Number(await told(child, 'port'));
      const gone = once(child, 'exit');
      const handingOver = standing.handOff(await input(standing, 'CASE-1'));
      expect((await gone)[1]).toBe('SIGKILL');
      const other = await startBilling();
      await handingOver;
      await expectFinished(other, 'CASE-1');
    },
    LIMIT_MS,
  );

  it(
    '[R-085] from a receiver that is killed while it drains, and no accepted case is lost',
    async () => {
      const standing = await open(triage);
      await standing.start();
      const child = doom(null, 'receive', billing.dir, '2000');
      target = Number(await told(child, 'port'));
      const ids = ['CASE-1', 'CASE-2', 'CASE-3', 'CASE-4'];
      const inputs = await Promise.all(ids.map((id) => input(standing, id)));
      const results = Promise.all(inputs.map((one) => standing.handOff(one)));
      await told(child, 'started');
      child.kill('SIGTERM');
      await told(child, 'closing');
      child.kill('SIGKILL');
      await once(child, 'exit');
      const other = await startBilling();
      await results;
      for (const id of ids) await expectFinished(other, id);
    },
    LIMIT_MS,
  );
});

describe('two living processes of an agent', () => {
  it('[R-088] send each open offer once, whoever was given up on by its caller', async () => {
    const one = await open(triage);
    const two = await open(triage);
    await one.start();
    await two.start({ port: 0 });
    const receiver = await startBilling();
    proxy.lose('requests');
    const ids = ['CASE-1', 'CASE-2', 'CASE-3', 'CASE-4', 'CASE-5'];
    for (const [n, id] of ids.entries()) {
      const sender = n % 2 === 0 ? one : two;
      expect(await sender.handOff(await input(sender, id))).toMatchObject({ state: 'open' });
    }
    proxy.lose('nothing');
    for (const id of ids) await expectFinished(receiver, id);
    expect(proxy.passed.filter((body) => body.includes('SendMessage'))).toHaveLength(ids.length);
    expect(worked.sort()).toEqual(ids);
  });

  it('[R-084] run the work of one acceptance once', async () => {
    const sender = await open(triage);
    await sender.start();
    await startBilling();
    const receiver = await startBilling();
    const ids = ['CASE-1', 'CASE-2', 'CASE-3'];
    for (const id of ids) await sender.handOff(await input(sender, id));
    for (const id of ids) await expectFinished(receiver, id);
    expect(worked.sort()).toEqual(ids);
  });
});
