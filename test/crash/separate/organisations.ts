import { setTimeout as sleep } from 'node:timers/promises';
import type { Holdfast } from '../../../src/index.js';
import type { LedgerStore } from '../../../src/ledger/index.js';
import { freePort } from '../../cli/support.js';
import { FaultProxy } from '../../faults/proxy.js';
import { type AgentFolder, makeAgents } from '../agents.js';
import type { TwoDatabases } from '../databases.js';
import { type How, Node, nothingTold, type Told } from '../node.js';
import { startDecliner } from './decliner.js';
import { type EffectTarget, startEffectTarget } from './effect-target.js';
import { isAltered, judgeBoth, type SeparateVerdict } from './judge.js';
import { Watch } from './watch.js';

/** What a dead process has started is looked up after this time. */
const EFFECT_LIMIT_MS = 1_000;
const SETTLE_MS = 120_000;
/** Nodes that live and are linked have heard each other long before. */
const HEARD_MS = 30_000;

export type Role = 'triage' | 'billing';

interface Made {
  readonly urls: Readonly<Record<Role, string>>;
  readonly ledgers: Readonly<Record<Role, LedgerStore>>;
  readonly links: Readonly<Record<Role, FaultProxy>>;
  readonly nodes: Readonly<Record<Role, Node>>;
  readonly decliner: Holdfast;
  readonly told: Told;
  readonly target: EffectTarget;
  remove(): Promise<void>;
}

/**
 * Two organisations, each a node with a ledger of its own behind a link that fails on demand, the business system on which both of them
 * act, and somebody who watches all three. Triage opens every case. A third organisation can be asked, and takes nothing.
 */
export class Organisations {
  readonly watch: Watch;
  readonly #made: Made;

  private constructor(made: Made) {
    this.#made = made;
    const { urls, ledgers, nodes, decliner } = made;
    this.watch = new Watch(
      [
        { agent: urls.triage, ledger: ledgers.triage },
        { agent: urls.billing, ledger: ledgers.billing },
      ],
      { agent: decliner.url, ledger: decliner.ledger },
      (probe) => {
        for (const node of Object.values(nodes)) node.order({ probe });
      },
    );
  }

  static async make(databases: TwoDatabases, next: () => number): Promise<Organisations> {
    const limits = `effect_limit: ${EFFECT_LIMIT_MS}ms\n      max_hops: 8`;
    const { list, remove } = await makeAgents(['triage', 'billing', 'decliner'], '', limits, (text, name) =>
      apart(text, name === 'decliner' ? 'ledger.db' : databases[name as Role].ledger),
    );
    const [triage, billing, third] = list as [AgentFolder, AgentFolder, AgentFolder];
    const decliner = await startDecliner(third);
    const told = nothingTold();
    const target = await startEffectTarget(next);
    const organisation = async (role: Role, mine: AgentFolder, peer: AgentFolder) => {
      const behind = await freePort();
      const link = new FaultProxy(behind);
      await link.listen(Number(new URL(mine.url).port));
      const agents = [peer.url, third.url, triage.url];
      const args = [mine.dir, ...agents, target.url, String(behind), String(EFFECT_LIMIT_MS)];
      return { link, node: new Node(role, args, told, 'organisation') };
    };
    const a = await organisation('triage', triage, billing);
    const b = await organisation('billing', billing, triage);
    return new Organisations({
      urls: { triage: triage.url, billing: billing.url },
      ledgers: { triage: await databases.triage.open(), billing: await databases.billing.open() },
      links: { triage: a.link, billing: b.link },
      nodes: { triage: a.node, billing: b.node },
      decliner,
      told,
      target,
      remove,
    });
  }

  get nodes(): Readonly<Record<Role, Node>> {
    return this.#made.nodes;
  }

  /** Each leads to the node of that name. */
  get links(): Readonly<Record<Role, FaultProxy>> {
    return this.#made.links;
  }

  get told(): Told {
    return this.#made.told;
  }

  async start(): Promise<void> {
    const started = await Promise.all([this.restart('triage'), this.restart('billing')]);
    if (started.includes(false)) throw new Error('a node ended at its start');
    this.watch.start();
  }

  /** A new life for a node that has none; false where it ended before it listened. */
  async restart(role: Role, faults?: string): Promise<boolean> {
    // What has crossed in its former life is of no use to anybody.
    this.links[role].exchanges.length = 0;
    const up = await this.nodes[role].start(faults);
    this.nodes[role].order({ probe: this.watch.cases });
    return up;
  }

  /** Resolves once each of the two has been answered by all of its peers since it was started: before that, it decides nothing with them. */
  async heard(): Promise<void> {
    const { urls, ledgers } = this.#made;
    const waits = async (role: Role) =>
      (await ledgers[role].listAwaited(urls[role])).some(({ state }) => state === 'waiting');
    for (const until = Date.now() + HEARD_MS; (await waits('triage')) || (await waits('billing')); ) {
      if (Date.now() > until) throw new Error(`the nodes have not heard each other in ${HEARD_MS / 1000} s`);
      await sleep(20);
    }
  }

  /** Resolves as `Node.handOver` does; the case is watched from now on. */
  handOver(from: Role, caseId: string, how?: How): Promise<string | null> {
    this.watch.add(caseId);
    return this.nodes[from].handOver(caseId, how);
  }

  /**
   * The links fail no more, and both nodes are started anew: whatever was begun is finished, what was refused or taken back is handed over
   * once more, and every case is judged. `corrupting`: a link has changed bytes.
   */
  async settle({ corrupting = false } = {}): Promise<SeparateVerdict> {
    for (const link of Object.values(this.links)) {
      link.schedule = () => ({});
      link.breakAll();
    }
    for (const role of ['triage', 'billing'] as const) {
      await this.nodes[role].stop();
      await this.restart(role);
    }
    await this.#handOverAgain();
    const deadline = Date.now() + SETTLE_MS;
    for (const caseId of this.watch.cases) this.watch.finish(caseId);
    for (let tries = 1; this.watch.cases.length > 0 && Date.now() < deadline; tries++) {
      if (corrupting && tries % 25 === 0 && (await this.#isAllAltered())) break;
      // What a handler has given up is run again by the next process.
      if (tries % 150 === 0) {
        await this.nodes.triage.stop();
        await this.restart('triage');
        await this.nodes.billing.stop();
        await this.restart('billing');
      }
      await sleep(200);
    }
    await this.watch.stop();
    for (const node of Object.values(this.nodes)) await node.stop();
    // What was begun at the last moment counts as unknown by then.
    await sleep(EFFECT_LIMIT_MS);
    const { urls, ledgers, decliner, told, target } = this.#made;
    const third = { agent: decliner.url, ledger: decliner.ledger };
    return judgeBoth({ urls, ledgers, decliner: third, told, target, watch: this.watch, corrupting });
  }

  /** Whether all that is left has been changed on its way, and so waits for a person. */
  async #isAllAltered(): Promise<boolean> {
    const { urls, ledgers } = this.#made;
    for (const caseId of this.watch.cases) {
      const ref = { tenant: 'default', root: urls.triage, caseId };
      const [here, there] = [await ledgers.triage.snapshot(ref), await ledgers.billing.snapshot(ref)];
      if (!isAltered(here, there)) return false;
    }
    return true;
  }

  /** Where an attempt came to nothing, the next one does not. */
  async #handOverAgain(): Promise<void> {
    const own = await this.#made.ledgers.triage.listCases('default', {
      owner: this.#made.urls.triage,
      limit: 10_000,
    });
    const waiting: string[] = [];
    for (const { ref, epoch } of own) {
      if (epoch !== 1 || ref.caseId.startsWith('REJECT1')) continue;
      // A list of candidates goes on by itself.
      if ((await this.#made.ledgers.triage.getPlan(ref))?.state !== 'active') waiting.push(ref.caseId);
    }
    const next = async (): Promise<void> => {
      for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) await this.handOver('triage', id);
    };
    await Promise.all([next(), next(), next()]);
  }

  async close(): Promise<void> {
    const { nodes, links, ledgers, decliner, target, remove } = this.#made;
    await this.watch.stop();
    await Promise.all(Object.values(nodes).map((node) => node.kill()));
    await decliner.close();
    await Promise.all(Object.values(links).map((link) => link.close()));
    await Promise.all(Object.values(ledgers).map((ledger) => ledger.close()));
    await target.close();
    await remove();
  }
}

/** A ledger of its own, and leave to act on what it opens itself. */
function apart(text: string, ledger: string): string {
  const own = /^url: (.*)$/m.exec(text)?.[1] ?? '';
  return `${text
    .replace(/^ledger: .*$/m, `ledger: ${JSON.stringify(ledger)}`)
    .replace('system_of_record: payments', 'system_of_record: payments\n    mode: separate')
    .replace('"*": [refund]', `"*": [refund]\n        ${JSON.stringify(JSON.parse(quoted(own)))}: [refund]`)}
limits:
  peer_timeout: 3s
  peer_requests_per_minute: 1000000
`;
}

function quoted(text: string): string {
  return text.startsWith('"') ? text : JSON.stringify(text);
}
