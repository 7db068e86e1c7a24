import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import { accept, type CaseRef, type HandoffHandler, type Holdfast, openHoldfast } from '../../src/index.js';
import type { Task } from '../../src/protocol/index.js';
import { CASE_FILE, CONTRACT, freePort, temporaryFolder } from '../cli/support.js';
import { type LossyProxy, lossyProxy } from '../lossy-proxy.js';
import { answered } from './organisations.js';

export type Mode = 'shared' | 'separate';
/** Runs what is in `dist/`; `npm test` builds first. */
const DOOMED = join(import.meta.dirname, 'doomed-candidates.mjs');
const NAMES = ['triage', 'first', 'second'] as const;
type Name = (typeof NAMES)[number];
export const CASE = 'CASE-7001';
const SECOND_MS = 1_000;
export const ACCEPT_WITHIN_MS = 600 * SECOND_MS;

/** An agent, behind a line that can be made to lose messages. */
export interface Candidate {
  readonly url: string;
  /** The running node; it is another after a restart. */
  readonly node: Holdfast;
  readonly line: LossyProxy;
  /** What it does with a handoff that it is offered. */
  check: NonNullable<HandoffHandler['check']>;
}

/** Triage, and two billing agents that take the same cases: on one ledger, or with a ledger each. */
export interface Candidates extends Record<Name, Candidate> {
  readonly ref: CaseRef;
  /** The clock of everybody. */
  advance(ms: number): void;
  /** Opens the case at epoch 3. */
  open(): Promise<void>;
  handOff(more?: Partial<Parameters<Holdfast['handOff']>[0]>): ReturnType<Holdfast['handOff']>;
  /** Triage hands over in a process that is killed at the fault, and is started again. Returns how that process ended. */
  handOffAndDie(faults: string, more?: Partial<Parameters<Holdfast['handOff']>[0]>): Promise<string | number>;
  /** States of triage's offers, by attempt. */
  offers(): Promise<string[]>;
  plan(): Promise<string | null>;
  /** Delivers raw message JSON as triage does. */
  deliver(to: Candidate, message: string): Promise<Task>;
  /** Who owns the case, for everybody whose ledger knows it. */
  owners(): Promise<Set<string>>;
  /** What is wrong between a ledger and its own audit; nothing. */
  problems(): Promise<string[]>;
  close(): Promise<void>;
}

/** `push`: triage asks to be told. `waiting`: how its kind says that cases are handed over. */
export async function startCandidates(
  mode: Mode,
  push = false,
  waiting: 'blocking' | 'queued' = 'blocking',
): Promise<Candidates> {
  const folder = temporaryFolder();
  let aheadMs = 0;
  const clock = { now: () => new Date(Date.now() + aheadMs) };
  const ports = await Promise.all(NAMES.map(() => freePort()));
  const urlOf = (name: Name) => `http://127.0.0.1:${ports[NAMES.indexOf(name)]}`;
  const keys = new Map<Name, string>();
  const hosts = NAMES.map((name) => urlOf(name).slice('http://'.length));

  const configOf = (name: Name) => ({
    agent: name,
    url: urlOf(name),
    ...(mode === 'shared' ? { ledger: '../ledger.db' } : {}),
    contracts: [CONTRACT],
    receives: name === 'triage' ? [] : [CONTRACT],
    kinds: {
      refund: {
        system_of_record: 'payments',
        mode,
        waiting,
        contracts: [CONTRACT],
        policy: {
          caps: { refund: '100.00 EUR' },
          operations: { '*': ['refund'], [urlOf('triage')]: ['refund'] },
        },
      },
    },
    peers: NAMES.filter((peer) => (peer === 'triage') !== (name === 'triage')).map((peer) => ({
      url: urlOf(peer),
      key: keys.get(peer) ?? 'x'.repeat(43),
      contracts: [CONTRACT],
      skills: ['billing'],
    })),
    network: { loopback: hosts },
    push: { hear_of_offers: push },
    limits: { peer_timeout: '5s' },
    shutdown: '200ms',
    log: { level: 'silent' },
  });

  for (const name of NAMES) {
    const known = await openHoldfast({ dir: join(folder.path, name), config: configOf(name) });
    keys.set(name, known.identity.thumbprint);
    await known.close();
  }

  const listening = new Map<Name, number>();

  async function startNode(name: Name, handler: HandoffHandler): Promise<Holdfast> {
    const node = await openHoldfast({
      dir: join(folder.path, name),
      config: configOf(name),
      ...(name === 'triage' ? {} : { handlers: { [CONTRACT]: handler } }),
      ports: {
        clock,
        pace: { sweepMs: 50, beatMs: 100, offerBackoffMs: push ? [60_000, 60_000] : [20, 100] },
      },
    });
    listening.set(name, (await node.start({ port: 0 })).port);
    return node;
  }

  async function start(name: Name): Promise<Candidate & { node: Holdfast }> {
    const line = await lossyProxy(ports[NAMES.indexOf(name)] ?? 0, () => listening.get(name) ?? 1);
    const node = await startNode(name, { check: (view) => made.check(view) });
    const made = { url: urlOf(name), node, line, check: (() => accept()) as Candidate['check'] };
    return made;
  }

  const started = await Promise.all(NAMES.map(start));
  for (const { node } of started) await answered(node);
  const [triage, first, second] = started as [Candidate & { node: Holdfast }, Candidate, Candidate];
  const ref = triage.node.caseRef(CASE, triage.url);
  const caseFile = JSON.parse(readFileSync(CASE_FILE, 'utf8'));

  async function inputOf(more: Partial<Parameters<Holdfast['handOff']>[0]>) {
    const { artifactId } = await triage.node.addEvidence(Buffer.from('charged twice'), {
      filename: 'claim.txt',
      mediaType: 'text/plain',
    });
    return {
      ref,
      caseFile: { ...caseFile, case_id: CASE },
      to: [first.url, second.url],
      contract: CONTRACT,
      evidence: [{ artifactId }],
      acceptWithinMs: ACCEPT_WITHIN_MS,
      ...more,
    };
  }

  return {
    triage,
    first,
    second,
    ref,
    advance(ms) {
      aheadMs += ms;
    },
    async open() {
      if (mode === 'separate') for (const { node } of [triage, first, second]) await answered(node);
      await triage.node.openCase({ caseId: CASE, kind: 'refund', epoch: 3, importedFrom: 'helpdesk' });
    },
    handOff: async (more = {}) => triage.node.handOff(await inputOf(more)),
    async handOffAndDie(faults, more = {}) {
      const input = JSON.stringify(await inputOf(more));
      await triage.node.close();
      const child = fork(DOOMED, [join(folder.path, 'triage'), JSON.stringify(configOf('triage')), input], {
        env: { ...process.env, HOLDFAST_FAULTS: faults },
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      });
      try {
        const ended = once(child, 'exit');
        const [{ port }] = await once(child, 'message');
        listening.set('triage', port);
        child.send('go');
        const survived = once(child, 'message').then(() => ['survived']);
        const [code, signal] = await Promise.race([ended, survived]);
        return signal ?? code;
      } finally {
        child.kill('SIGKILL');
        triage.node = await startNode('triage', {});
      }
    },
    async offers() {
      const { offers } = await triage.node.ledger.snapshot(ref);
      return offers.map(({ state }) => state);
    },
    async plan() {
      const plan = await triage.node.ledger.getPlan(ref);
      return plan && [plan.state, plan.reason].filter(Boolean).join(' ');
    },
    async deliver(to, message) {
      const response = await fetch(`${to.url}/a2a`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'a2a-version': '1.0',
          authorization: `Bearer ${await triage.node.identity.tokenFor(to.url)}`,
        },
        body: `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message}}}`,
      });
      const body = (await response.json()) as { result: { task: Task } };
      return body.result.task;
    },
    async owners() {
      const rows = await Promise.all([triage, first, second].map(({ node }) => node.ledger.getCase(ref)));
      return new Set(rows.flatMap((row) => (row === null ? [] : [`${row.owner} at ${row.epoch}`])));
    },
    async problems() {
      const found = await Promise.all(
        [triage, first, second].map(async ({ node }) => {
          const snapshot = await node.ledger.snapshot(ref);
          verifyChain(snapshot.audit);
          return compareWithLedger(replay(snapshot.audit), snapshot);
        }),
      );
      return found.flat();
    },
    async close() {
      for (const { node, line } of [triage, first, second]) {
        await node.close();
        line.close();
      }
      folder.remove();
    },
  };
}
