/**
 * Random `kill -9` of either of two nodes while one hands cases over to the other. Afterwards every case must have been accepted once or
 * still be the sender's, the audit must replay to the ledger, and the business system must have seen no effect twice.
 *
 *   npm run test:crash [-- KILLS [SEED]]
 */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import { main as holdfastCommand } from '../../src/cli/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import { startTarget } from './target.js';

const KILLS = Number(process.argv[2] ?? 200);
const SEED = Number(process.argv[3] ?? Date.now() % 1_000_000);
const LIMIT_MS = 14 * 60_000;
const SETTLE_MS = 60_000;

/** mulberry32: the same seed gives the same kills at the same waits. */
function random(seed: number): () => number {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

interface Told {
  accepted: Set<string>;
  outcomes: Map<string, number>;
  violations: string[];
}

class Node {
  #child: ChildProcess | null = null;
  constructor(
    readonly role: 'triage' | 'billing',
    private readonly args: string[],
    private readonly told: Told,
  ) {}

  /** An `idle` node begins no handover of its own, and only finishes what was left open. */
  async start(idle = false): Promise<void> {
    const args = [this.role, ...this.args, ...(idle ? ['idle'] : [])];
    const child = fork(join(import.meta.dirname, 'agent.mjs'), args, {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code, signal) =>
        reject(new Error(`${this.role} ended at its start: ${code ?? signal}`)),
      );
      child.on('message', (message) => this.#hear(message as Record<string, string>, resolve));
    });
    child.removeAllListeners('exit');
  }

  #hear(message: Record<string, string>, ready: () => void): void {
    if (message.ready) ready();
    if (message.violation) this.told.violations.push(`${message.caseId}: ${message.violation}`);
    if (message.state === 'accepted' && message.caseId) this.told.accepted.add(message.caseId);
    const outcome = message.state ? [message.state, message.code].filter(Boolean).join(' ') : message.refused;
    if (outcome) this.told.outcomes.set(outcome, (this.told.outcomes.get(outcome) ?? 0) + 1);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  /** Asks for an orderly end, and insists when none comes. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.send('stop');
    const late = setTimeout(() => child.kill('SIGKILL'), 20_000);
    await gone;
    clearTimeout(late);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function command(...argv: string[]): Promise<string> {
  const written: string[] = [];
  const write = process.stdout.write;
  process.stdout.write = ((chunk: string | Uint8Array) => written.push(String(chunk)) > 0) as typeof write;
  try {
    const code = await holdfastCommand([...argv, '--json']);
    if (code !== 0) throw new Error(`holdfast ${argv.join(' ')}: exit ${code} ${written.join('')}`);
  } finally {
    process.stdout.write = write;
  }
  return written.join('');
}

/** Two agents on one ledger file, each other's peers, made with the command as a user would. */
async function setUp(
  dir: string,
): Promise<{ urls: [string, string]; dirs: [string, string]; ledger: string }> {
  const ledger = join(dir, 'ledger.db');
  const names = ['triage', 'billing'] as const;
  const dirs = names.map((name) => join(dir, name)) as [string, string];
  const urls: string[] = [];
  const keys: string[] = [];
  for (const [i, name] of names.entries()) {
    const url = `http://127.0.0.1:${await freePort()}`;
    await command('init', '--agent', name, '--dir', dirs[i] as string, '--url', url, '--ledger', ledger);
    keys.push(JSON.parse(await command('identity', '--dir', dirs[i] as string)).thumbprint);
    urls.push(url);
  }
  for (const [mine, theirs] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const peer = ['--url', urls[theirs] as string, '--key', keys[theirs] as string];
    await command(
      'peer',
      'add',
      '--dir',
      dirs[mine],
      ...peer,
      '--contract',
      'refund-dispute/1',
      '--skill',
      'billing',
    );
  }
  return { urls: urls as [string, string], dirs, ledger };
}

async function openOffers(ledger: LedgerStore): Promise<number> {
  return (await ledger.listOffers('default', { open: true, limit: 1000 })).length;
}

/** What must hold of every case, whatever was killed when. */
async function judge(
  ledger: LedgerStore,
  urls: [string, string],
  told: Told,
): Promise<{ cases: number; accepted: number }> {
  const wrong = (caseId: string, problem: string) => told.violations.push(`${caseId}: ${problem}`);
  const refs = await ledger.listAuditedCases('default');
  let accepted = 0;
  for (const ref of refs) {
    const snapshot = await ledger.snapshot(ref);
    const { case: row, decisions, work, audit } = snapshot;
    const acceptances = decisions.filter((decision) => decision.verdict === 'accepted');
    if (!row) wrong(ref.caseId, 'has audit entries and is not in the ledger');
    else if (row.owner === urls[1]) {
      accepted++;
      if (row.epoch !== 2 || acceptances.length !== 1 || work.length !== 1)
        wrong(ref.caseId, 'was not accepted exactly once');
    } else if (row.owner !== urls[0] || row.epoch !== 1 || acceptances.length > 0 || work.length > 0) {
      wrong(ref.caseId, 'is neither accepted nor whole with its sender');
    }
    if (told.accepted.delete(ref.caseId) && row?.owner !== urls[1])
      wrong(ref.caseId, 'was acknowledged and is lost');
    const chain = verifyChain(audit);
    if (!chain.ok) wrong(ref.caseId, `audit: ${chain.problem} at ${chain.seq}`);
    for (const difference of compareWithLedger(replay(audit), snapshot))
      wrong(ref.caseId, `replay: ${difference}`);
  }
  for (const caseId of told.accepted) wrong(caseId, 'was acknowledged and is not in the ledger');
  return { cases: refs.length, accepted };
}

async function run(): Promise<number> {
  const began = Date.now();
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-crash-'));
  const target = await startTarget();
  const told: Told = { accepted: new Set(), outcomes: new Map(), violations: [] };
  const next = random(SEED);
  const nodes: Node[] = [];
  try {
    const { urls, dirs, ledger: file } = await setUp(dir);
    const billing = new Node('billing', [dirs[1], urls[0], target.url], told);
    const triage = new Node('triage', [dirs[0], urls[1], target.url], told);
    nodes.push(billing, triage);
    await Promise.all(nodes.map((node) => node.start()));
    let kills = 0;
    for (; kills < KILLS && Date.now() - began < LIMIT_MS; kills++) {
      await sleep(next() * 500);
      const victim = next() < 0.5 ? billing : triage;
      await victim.kill();
      await victim.start();
    }
    const ledger = await openSqliteLedger({ file });
    try {
      const deadline = Date.now() + SETTLE_MS;
      await triage.stop();
      await triage.start(true);
      while ((await openOffers(ledger)) > 0 && Date.now() < deadline) await sleep(100);
      await triage.stop();
      await billing.stop();
      const open = await openOffers(ledger);
      if (open > 0) told.violations.push(`${open} offers are still open`);
      const { cases, accepted } = await judge(ledger, urls, told);
      const twice = [...target.calls].filter(([, calls]) => calls > 1);
      for (const [key, calls] of twice)
        told.violations.push(`${key}: the effect reached its target ${calls} times`);
      if (kills < KILLS) told.violations.push(`only ${kills} of ${KILLS} kills fitted into the time`);
      if (accepted < KILLS / 4) told.violations.push(`only ${accepted} handovers: the run says too little`);
      console.log(`outcomes: ${JSON.stringify(Object.fromEntries(told.outcomes))}`);
      for (const violation of told.violations.slice(0, 50)) console.log(`VIOLATION ${violation}`);
      const seconds = Math.round((Date.now() - began) / 1000);
      console.log(
        `${cases} handovers begun, ${accepted} accepted, ${cases - accepted} still the sender's, ${target.calls.size} effects, ` +
          `${kills} kills, seed ${SEED}, ${seconds} s, ${told.violations.length} violations`,
      );
    } finally {
      await ledger.close();
    }
  } finally {
    await Promise.all(nodes.map((node) => node.kill()));
    await target.close();
    await rm(dir, { recursive: true, force: true });
  }
  return told.violations.length === 0 ? 0 : 1;
}

process.exitCode = await run();
