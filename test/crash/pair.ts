import { setTimeout as sleep } from 'node:timers/promises';
import type { CaseRef } from '../../src/core/index.js';
import { type AgentFolder, makeAgents } from './agents.js';
import type { CrashDatabase } from './databases.js';
import { type Agents, judge, type Verdict } from './judge.js';
import { Node, nothingTold, type Told } from './node.js';
import { startTarget, type Target } from './target.js';

/** As short as a kind may say: what a dead process has started is looked up after this time. */
const EFFECT_LIMIT_MS = 1_000;
const SETTLE_MS = 90_000;

/**
 * Two agents on one ledger, each other's peers, and the business system that one of them calls; where it is asked for, a second agent
 * that takes cases.
 */
export class Pair {
  private constructor(
    readonly database: CrashDatabase,
    readonly target: Target,
    readonly told: Told,
    readonly triage: Node,
    readonly billing: Node,
    private readonly second: Node | null,
    private readonly urls: Agents,
    private readonly remove: () => Promise<void>,
  ) {}

  static async make(database: CrashDatabase, withSecond = false): Promise<Pair> {
    const limits = `effect_limit: ${EFFECT_LIMIT_MS}ms`;
    const names = ['triage', 'billing', ...(withSecond ? ['second'] : [])];
    const { list, remove } = await makeAgents(names, database.ledger, limits);
    const [triage, billing, second] = list as [AgentFolder, AgentFolder, AgentFolder?];
    const target = await startTarget();
    const told = nothingTold();
    const others = second === undefined ? [] : [second.url];
    return new Pair(
      database,
      target,
      told,
      new Node('triage', [triage.dir, billing.url, target.url, ...others], told),
      new Node('billing', [billing.dir, triage.url, target.url], told),
      second === undefined ? null : new Node('second', [second.dir, triage.url, target.url], told),
      { triage: triage.url, billing: billing.url, second: second?.url ?? null },
      remove,
    );
  }

  get nodes(): readonly Node[] {
    return [this.triage, this.billing, ...(this.second === null ? [] : [this.second])];
  }

  async start(): Promise<void> {
    const started = await Promise.all(this.nodes.map((node) => node.start()));
    if (started.includes(false)) throw new Error('a node ended at its start');
  }

  /**
   * Ends what is under way in good order, lets restarted nodes finish what was left, hands over anew what was never offered, and
   * judges every case.
   */
  async settle(): Promise<Verdict> {
    for (const node of this.nodes) await node.stop();
    await this.start();
    const ledger = await this.database.open();
    try {
      const deadline = Date.now() + SETTLE_MS;
      await this.#handOverAgain(ledger);
      // An effect that a dead process had started is looked up only after its limit, by whoever works on the case then.
      await sleep(EFFECT_LIMIT_MS);
      let left = await leftIn(ledger, this.urls.triage);
      for (let tries = 1; left !== '' && Date.now() < deadline; tries++) {
        if (tries % 30 === 0) {
          await this.billing.stop();
          await this.billing.start();
        }
        await sleep(200);
        left = await leftIn(ledger, this.urls.triage);
      }
      for (const node of this.nodes) await node.stop();
      if (left !== '') this.told.violations.push(`after ${SETTLE_MS / 1000} s there are still ${left}`);
      return await judge(ledger, this.urls, this.told, this.target);
    } finally {
      await ledger.close();
    }
  }

  async #handOverAgain(ledger: Awaited<ReturnType<CrashDatabase['open']>>): Promise<void> {
    const own = await ledger.listCases('default', { owner: this.urls.triage, limit: 10_000 });
    const waiting = own.filter(({ ref }) => !ref.caseId.startsWith('REJECT')).map(({ ref }) => ref.caseId);
    const next = async (): Promise<void> => {
      for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) await this.triage.handOver(id);
    };
    await Promise.all([next(), next(), next(), next()]);
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
    await this.target.close();
    await this.remove();
  }
}

/** What is not finished yet, with the plans of this sender; empty where all is. */
export async function leftIn(
  ledger: Awaited<ReturnType<CrashDatabase['open']>>,
  sender?: string,
): Promise<string> {
  const offers = await ledger.listOffers('default', { open: true, limit: 1000 });
  const work = await ledger.listWork('default', { state: 'open', limit: 1000 });
  const plans = sender === undefined ? [] : await ledger.listPlans('default', sender, 1000);
  const all = [
    named('open offers', offers),
    named('open work items', work),
    named('plans of candidates', plans),
  ];
  return all.filter(Boolean).join(' and ');
}

function named(what: string, rows: readonly { readonly ref: CaseRef }[]): string {
  const names = rows.slice(0, 5).map(({ ref }) => ref.caseId);
  return rows.length > 0 ? `${rows.length} ${what} (${names.join(', ')})` : '';
}
