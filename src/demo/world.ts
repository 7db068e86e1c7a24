import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CaseRef } from '../core/index.js';
import { addPeer, initAgent, loadIdentity } from '../node/index.js';
import { AgentProcess } from './child.js';
import type { AgentSetup } from './commands.js';
import type { Role } from './expectation.js';
import { CASE_ID, CONTRACT, FOREIGN_CASE_ID, sourceRecord, TENANT } from './fixture.js';
import { RecordingProxy } from './proxy.js';
import { BusinessSystems } from './systems.js';

export interface WorldOptions {
  /** The customer's words hold an order to refund more than the cap, and billing obeys what it reads. */
  readonly injected: boolean;
  /** Nothing may be dialled but what the configuration names; see {@link AgentSetup.dialOnly}. */
  readonly confined: boolean;
  /** A third agent, configured as a peer of billing's without any permission, which owns a case of its own. */
  readonly outsider: boolean;
}

export type AgentName = Role | 'outsider';

interface Agent {
  readonly name: AgentName;
  readonly dir: string;
  readonly proxy: RecordingProxy;
  readonly process: AgentProcess;
}

/** Everything a scenario plays in: two agents in their own processes, the systems they work with, and the wire between them. */
export class World {
  readonly dir: string;
  readonly systems: BusinessSystems;
  readonly ref: CaseRef;
  readonly #agents: ReadonlyMap<AgentName, Agent>;

  private constructor(dir: string, systems: BusinessSystems, agents: ReadonlyMap<AgentName, Agent>) {
    this.dir = dir;
    this.systems = systems;
    this.#agents = agents;
    this.ref = { tenant: TENANT, root: this.urlOf('triage'), caseId: CASE_ID };
  }

  /** Nothing is left running or on disk when it fails. */
  static async create(options: WorldOptions): Promise<World> {
    const dir = await mkdtemp(join(tmpdir(), 'holdfast-demo-'));
    const systems = new BusinessSystems(sourceRecord({ injected: options.injected }));
    const names: AgentName[] = ['triage', 'billing', ...(options.outsider ? (['outsider'] as const) : [])];
    const agents = new Map(
      names.map((name) => [
        name,
        { name, dir: join(dir, name), proxy: new RecordingProxy(), process: new AgentProcess(name) },
      ]),
    );
    const stop = () => stopAll(dir, systems, agents);
    try {
      await Promise.all([systems.start(), ...[...agents.values()].map(({ proxy }) => proxy.start())]);
      const world = new World(dir, systems, agents);
      await world.#configure();
      await world.#start(options);
      return world;
    } catch (error) {
      await stop();
      throw error;
    }
  }

  get triage(): AgentProcess {
    return this.agent('triage');
  }

  get billing(): AgentProcess {
    return this.agent('billing');
  }

  get billingUrl(): string {
    return this.urlOf('billing');
  }

  agent(name: AgentName): AgentProcess {
    return this.#get(name).process;
  }

  proxy(name: AgentName): RecordingProxy {
    return this.#get(name).proxy;
  }

  urlOf(name: AgentName): string {
    return this.proxy(name).url;
  }

  dirOf(name: AgentName): string {
    return this.#get(name).dir;
  }

  agents(): readonly Agent[] {
    return [...this.#agents.values()];
  }

  roleOf(url: string): Role {
    const role = (['triage', 'billing'] as const).find((name) => this.urlOf(name) === url);
    if (!role) throw new Error(`the case is owned by ${url}, who has no part in this`);
    return role;
  }

  stop(): Promise<void> {
    return stopAll(this.dir, this.systems, this.#agents);
  }

  #get(name: AgentName): Agent {
    const agent = this.#agents.get(name);
    if (!agent) throw new Error(`there is no ${name} in this world`);
    return agent;
  }

  /** Each agent has its folder, its key and its own ideas of its peers; triage and billing share the ledger. */
  async #configure(): Promise<void> {
    const keys = new Map<AgentName, string>();
    for (const { name, dir } of this.agents()) {
      const ledger = name === 'outsider' ? 'ledger.db' : join(this.dir, 'ledger.db');
      await initAgent({ dir, agent: name, url: this.urlOf(name), ledger });
      keys.set(name, (await loadIdentity(dir)).thumbprint);
    }
    const known = (of: AgentName, peer: AgentName, permitted: boolean) =>
      addPeer(this.dirOf(of), {
        url: this.urlOf(peer),
        key: keys.get(peer) ?? '',
        contracts: permitted ? [CONTRACT] : [],
        skills: permitted ? ['billing'] : [],
      });
    known('triage', 'billing', true);
    known('billing', 'triage', true);
    if (this.#agents.has('outsider')) known('billing', 'outsider', false);
  }

  async #start({ confined, injected }: WorldOptions): Promise<void> {
    await Promise.all(
      this.agents().map(async ({ name, dir, proxy, process }) => {
        const { port } = await process.start({
          dir,
          role: name,
          systemsUrl: this.systems.url,
          gullible: injected,
          dialOnly:
            confined && name === 'billing' ? this.agents().map((agent) => hostOf(agent.proxy.url)) : null,
        });
        proxy.forwardTo(port);
      }),
    );
    await this.triage.call('openCase', { caseId: CASE_ID });
    if (this.#agents.has('outsider')) {
      await this.triage.call('openCase', { caseId: FOREIGN_CASE_ID, owner: this.urlOf('outsider') });
    }
  }
}

function hostOf(url: string): string {
  return new URL(url).host;
}

async function stopAll(
  dir: string,
  systems: BusinessSystems,
  agents: ReadonlyMap<AgentName, Agent>,
): Promise<void> {
  await Promise.all([...agents.values()].map(({ process }) => process.stop()));
  await Promise.all([systems.stop(), ...[...agents.values()].map(({ proxy }) => proxy.stop())]);
  await rm(dir, { recursive: true, force: true });
}
