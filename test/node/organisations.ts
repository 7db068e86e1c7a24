import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import {
  accept,
  type CaseRef,
  type CaseRow,
  type HandoffHandler,
  type Holdfast,
  openHoldfast,
  parseCaseFile,
} from '../../src/index.js';
import { rotateKey } from '../../src/node/index.js';
import type { Task } from '../../src/protocol/index.js';
import { openWitnessFiles } from '../../src/storage/index.js';
import { CASE_FILE, CONTRACT, freePort, temporaryFolder } from '../cli/support.js';
import { type LossyProxy, lossyProxy } from '../lossy-proxy.js';
import { type Disks, disksOf, type EngineName } from './disks.js';

const NAMES = ['triage', 'billing', 'legal'] as const;
type Name = (typeof NAMES)[number];

/** One organisation: an agent with a ledger of its own, behind a line that can be made to lose messages. */
export interface Organisation {
  readonly name: Name;
  readonly url: string;
  readonly line: LossyProxy;
  /** The running node. @throws where it is down */
  readonly node: Holdfast;
  /** What it does with a handoff that it is offered. */
  check: NonNullable<HandoffHandler['check']>;
  /** Whether `up` lasts until its peers have answered; only where all of them are up. */
  waits: boolean;
  up(): Promise<Holdfast>;
  down(): Promise<void>;
  /** What it has on its disks, to be copied and put back while it is down. */
  readonly disks: Disks;
}

export interface World extends Record<Name, Organisation> {
  /** The clock of everybody. */
  advance(ms: number): void;
  ref(caseId?: string): CaseRef;
  /** Opened by triage, its root. */
  open(caseId?: string): Promise<void>;
  handOff(
    from: Organisation,
    to: Organisation,
    caseId?: string,
    more?: { readonly person?: string },
  ): ReturnType<Holdfast['handOff']>;
  /** Delivers raw message JSON to `to`, under the name of `from`. */
  deliver(from: Organisation, to: Organisation, message: string): Promise<Task>;
  owner(of: Organisation, caseId?: string): Promise<string | null>;
  /** Changes the key of one that is down. */
  rotate(of: Organisation): Promise<void>;
  /** What the others take for its key when they start next; the key that it has, if nothing is given. */
  pin(of: Organisation, thumbprint?: string): void;
  close(): Promise<void>;
}

/** Triage and billing know each other, and billing and legal do; triage and legal do not. */
export async function startOrganisations(
  running: readonly Name[] = NAMES,
  engine: EngineName = 'sqlite',
): Promise<World> {
  const folder = temporaryFolder();
  let aheadMs = 0;
  const clock = { now: () => new Date(Date.now() + aheadMs) };
  const pairs: readonly (readonly [Name, Name])[] = [
    ['triage', 'billing'],
    ['billing', 'legal'],
  ];
  const ports = await Promise.all(NAMES.map(() => freePort()));
  const urlOf = (name: Name) => `http://127.0.0.1:${ports[NAMES.indexOf(name)]}`;
  const keys = new Map<Name, string>();
  const disks = new Map<Name, Disks>();
  const disksFor = (name: Name) => disks.get(name) as Disks;

  const configOf = (name: Name) => ({
    agent: name,
    url: urlOf(name),
    ledger: disksFor(name).ledger,
    contracts: [CONTRACT],
    receives: [CONTRACT],
    kinds: {
      refund: {
        system_of_record: 'payments',
        mode: 'separate',
        contracts: [CONTRACT],
        policy: {
          caps: { refund: '100.00 EUR' },
          operations: {
            '*': ['refund'],
            ...Object.fromEntries(NAMES.map((one) => [urlOf(one), ['refund']])),
          },
        },
        limits: { max_hops: 8 },
      },
    },
    peers: pairs
      .filter((pair) => pair.includes(name))
      .map(([a, b]) => (a === name ? b : a))
      // One that never runs would be waited for, for ever.
      .filter((peer) => running.includes(peer))
      .map((peer) => ({
        url: urlOf(peer),
        key: keys.get(peer) ?? 'x'.repeat(43),
        contracts: [CONTRACT],
        skills: ['billing'],
      })),
    network: { loopback: NAMES.map((one) => urlOf(one).slice('http://'.length)) },
    limits: { peer_timeout: '20s' },
    shutdown: '200ms',
    log: { level: 'silent' },
  });

  for (const name of NAMES)
    disks.set(name, await disksOf(running.includes(name) ? engine : 'sqlite', join(folder.path, name)));
  /** As its file, so that commands can be run in its folder. */
  const configure = (name: Name) => {
    const { dir } = disksFor(name);
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    writeFileSync(join(dir, 'holdfast.yaml'), JSON.stringify(configOf(name)));
    return dir;
  };
  for (const name of running) {
    const known = await openHoldfast({ dir: configure(name) });
    keys.set(name, known.identity.thumbprint);
    await known.close();
  }

  async function organisation(name: Name): Promise<Organisation> {
    let node: Holdfast | null = null;
    let listening = 0;
    const made: Organisation = {
      name,
      url: urlOf(name),
      line: await lossyProxy(ports[NAMES.indexOf(name)] ?? 0, () => listening),
      check: () => accept(),
      waits: false,
      disks: disksFor(name),
      get node() {
        if (node === null) throw new Error(`${name} is down`);
        return node;
      },
      async up() {
        node = await openHoldfast({
          dir: configure(name),
          handlers: { [CONTRACT]: { check: (view) => made.check(view) } },
          ports: { clock, pace: { sweepMs: 50, offerBackoffMs: [20, 100] } },
        });
        listening = (await node.start({ port: 0 })).port;
        if (made.waits) await answered(node);
        return node;
      },
      async down() {
        const stopping = node;
        node = null;
        listening = 1;
        const held = await stopping?.ledger.listCases('default');
        await stopping?.close();
        if (held !== undefined) await assertWitnessed(disksFor(name).dir, held);
      },
    };
    if (running.includes(name)) await made.up();
    return made;
  }

  const [triage, billing, legal] = (await Promise.all(NAMES.map(organisation))) as [
    Organisation,
    Organisation,
    Organisation,
  ];
  for (const one of [triage, billing, legal]) if (running.includes(one.name)) await answered(one.node);

  const ref = (caseId = 'CASE-7001') => triage.node.caseRef(caseId, urlOf('triage'));
  const refFor = (of: Organisation, caseId = 'CASE-7001') => of.node.caseRef(caseId, urlOf('triage'));

  return {
    triage,
    billing,
    legal,
    ref,
    advance(ms) {
      aheadMs += ms;
    },
    async open(caseId = 'CASE-7001') {
      await triage.node.openCase({ caseId, kind: 'refund' });
    },
    async handOff(from, to, caseId = 'CASE-7001', more = {}) {
      const { artifactId } = await from.node.addEvidence(Buffer.from('charged twice'), {
        filename: 'claim.txt',
        mediaType: 'text/plain',
      });
      const document = JSON.parse(readFileSync(CASE_FILE, 'utf8'));
      return from.node.handOff({
        ref: refFor(from, caseId),
        caseFile: parseCaseFile(Buffer.from(JSON.stringify({ ...document, case_id: caseId }))),
        to: to.url,
        contract: CONTRACT,
        evidence: [{ artifactId }],
        ...more,
      });
    },
    async deliver(from, to, message) {
      const response = await fetch(`${to.url}/a2a`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'a2a-version': '1.0',
          authorization: `Bearer ${await from.node.identity.tokenFor(to.url)}`,
        },
        body: `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message}}}`,
      });
      const body = (await response.json()) as { result: { task: Task } };
      return body.result.task;
    },
    async owner(of, caseId = 'CASE-7001') {
      const row = await of.node.ledger.getCase(refFor(of, caseId));
      return row === null ? null : `${row.owner} at ${row.epoch}`;
    },
    rotate: (of) => rotateKey(of.disks.dir, clock),
    pin(of, thumbprint = of.node.identity.thumbprint) {
      keys.set(of.name, thumbprint);
    },
    async close() {
      for (const one of [triage, billing, legal]) {
        await one.down();
        one.line.close();
      }
      await Promise.all([...disks.values()].map((one) => one.remove()));
      folder.remove();
    },
  };
}

/** Until every peer has said what it holds since the node was started. */
export async function answered({ ledger, url }: Holdfast): Promise<void> {
  const waiting = async () =>
    (await ledger.listAwaited(url)).filter(({ state }) => state === 'waiting').map(({ peer }) => peer);
  await vi.waitFor(async () => expect(await waiting()).toEqual([]), { timeout: 15_000, interval: 10 });
}

/** Whatever has moved a case: an agent whose ledger is put back alone must be able to tell. */
async function assertWitnessed(dir: string, held: readonly CaseRow[]): Promise<void> {
  const seen = new Map<string, number>();
  const nameOf = ({ tenant, root, caseId }: CaseRef) => JSON.stringify([tenant, root, caseId]);
  await openWitnessFiles(join(dir, 'witness')).visit(
    async (batch) => {
      for (const { ref, epoch } of batch) seen.set(nameOf(ref), epoch);
      return batch;
    },
    { rewrite: false },
  );
  for (const { ref, epoch, status } of held) {
    if (status === 'open') expect(seen.get(nameOf(ref))).toBeGreaterThanOrEqual(epoch);
  }
}

/** What is wrong between a ledger and its own audit; nothing. */
export async function auditProblems(of: Organisation, ref: CaseRef): Promise<string[]> {
  const snapshot = await of.node.ledger.snapshot(ref);
  verifyChain(snapshot.audit);
  return compareWithLedger(replay(snapshot.audit), snapshot);
}
