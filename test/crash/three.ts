import type { ChildProcess } from 'node:child_process';
import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import type { CaseRef } from '../../src/core/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { type AgentFolder, makeAgents } from './agents.js';
import type { CrashDatabase } from './databases.js';
import { run } from './programs.js';

const CALLERS = 64;
/** As far as a case may be handed on: its chain names every agent it has passed. */
const LAST_EPOCH = 31;

export interface ThreeResult {
  readonly cases: number;
  readonly epochs: number;
  readonly outcomes: ReadonlyMap<string, number>;
  readonly violations: readonly string[];
}

/** One node of three; asked one thing at a time. */
class Contender {
  readonly #child: ChildProcess;

  constructor(
    readonly agent: AgentFolder,
    peers: readonly AgentFolder[],
  ) {
    this.#child = run('contender', [agent.dir, ...peers.map(({ url }) => url)]);
  }

  /** What it answers next. */
  answer<T>(): Promise<T> {
    return new Promise((resolve, reject) => {
      const gone = () => reject(new Error(`${this.agent.url} ended`));
      this.#child.once('exit', gone);
      this.#child.once('message', (message) => {
        this.#child.off('exit', gone);
        resolve((message as { done: T }).done);
      });
    });
  }

  ask<T>(order: object): Promise<T> {
    const answer = this.answer<T>();
    this.#child.send(order);
    return answer;
  }

  tell(order: object): void {
    this.#child.send(order);
  }

  signal(signal: 'SIGCONT' | 'SIGKILL'): void {
    this.#child.kill(signal);
  }

  async end(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGKILL');
    await gone;
  }
}

/**
 * Three nodes on one database. The callers of all of them want the same case at the same time; and one node is paused while others take
 * over what it owned.
 */
export async function three(database: CrashDatabase, count: number): Promise<ThreeResult> {
  const agents = await makeAgents(
    ['one', 'two', 'three'],
    database.ledger,
    'max_hops: 32\n      max_tasks: 1000',
  );
  const violations: string[] = [];
  const outcomes = new Map<string, number>();
  const nodes = agents.list.map(
    (agent) =>
      new Contender(
        agent,
        agents.list.filter((one) => one !== agent),
      ),
  );
  const [one, two, third] = nodes as [Contender, Contender, Contender];
  try {
    await Promise.all(nodes.map((node) => node.answer()));
    const refs: CaseRef[] = [];
    for (let number = 0; number < count; number++) {
      const ref = await one.ask<CaseRef>({ open: `CASE-${number}` });
      refs.push(ref);
      const shares = nodes.map((_, at) => Math.floor((CALLERS + at) / nodes.length));
      const all = await Promise.all(
        nodes.map((node, at) =>
          node.ask<Record<string, number>[]>({ contend: { ref, until: LAST_EPOCH, callers: shares[at] } }),
        ),
      );
      for (const [name, times] of all.flat().flatMap((each) => Object.entries(each))) {
        outcomes.set(name, (outcomes.get(name) ?? 0) + times);
      }
    }
    violations.push(...(await pause(one, two, third)));
    const ledger = await database.open();
    try {
      for (const ref of refs) violations.push(...(await judgeChain(ledger, ref)));
    } finally {
      await ledger.close();
    }
    return { cases: count, epochs: count * (LAST_EPOCH - 1), outcomes, violations };
  } finally {
    await Promise.all(nodes.map((node) => node.end()));
    await agents.remove();
  }
}

/** The owner stops where its offer is answered and it does not know yet; the case moves on; then it goes on as if nothing had been. */
async function pause(owner: Contender, second: Contender, third: Contender): Promise<string[]> {
  const violations: string[] = [];
  const ref = await owner.ask<CaseRef>({ open: 'CASE-PAUSED' });
  owner.tell({ arm: 'S5.before_read=stop@1' });
  const told = owner.ask<string>({ hand: { ref, to: second.agent.url } });
  const moved = await untilHanded(second, { ref, to: third.agent.url });
  if (moved !== 'accepted') violations.push(`the case did not move on while its owner was paused: ${moved}`);
  owner.signal('SIGCONT');
  const outcome = await told;
  if (outcome !== 'accepted') violations.push(`the paused owner was told ${outcome}`);
  for (const epoch of [1, 2, 3]) {
    const written = await owner.ask<string>({ note: { ref, epoch } });
    const expected = epoch === 3 ? 'not_owner' : 'epoch_stale';
    if (written !== expected) violations.push(`a note of the paused owner at epoch ${epoch} was ${written}`);
  }
  const again = await owner.ask<string>({ hand: { ref, to: third.agent.url } });
  if (again !== 'not_owner') violations.push(`the paused owner could hand over again: ${again}`);
  return violations;
}

/** It owns the case only once the acceptance has committed, of which the paused owner says nothing. */
async function untilHanded(node: Contender, hand: object): Promise<string> {
  for (let tries = 0; ; tries++) {
    const outcome = await node.ask<string>({ hand });
    if (outcome !== 'not_owner' || tries === 600) return outcome;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function judgeChain(ledger: LedgerStore, ref: CaseRef): Promise<string[]> {
  const wrong: string[] = [];
  const snapshot = await ledger.snapshot(ref);
  const accepted = snapshot.decisions.filter(({ verdict }) => verdict === 'accepted');
  const epochs = accepted.map(({ epochAfter }) => epochAfter ?? 0).sort((a, b) => a - b);
  const expected = Array.from({ length: (snapshot.case?.epoch ?? 1) - 1 }, (_, at) => at + 2);
  if (epochs.join() !== expected.join()) wrong.push(`acceptances of the epochs ${epochs.join()}`);
  if ((snapshot.case?.epoch ?? 0) < LAST_EPOCH) wrong.push(`only came to epoch ${snapshot.case?.epoch}`);
  if (snapshot.work.length !== accepted.length) wrong.push(`${snapshot.work.length} work items`);
  const chain = verifyChain(snapshot.audit);
  if (!chain.ok) wrong.push(`audit: ${chain.problem} at ${chain.seq}`);
  for (const difference of compareWithLedger(replay(snapshot.audit), snapshot))
    wrong.push(`replay: ${difference}`);
  return wrong.map((problem) => `${ref.caseId}: ${problem}`);
}
