import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CaseRef, newId } from '../core/index.js';
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
  /** URL of the database that holds the ledger; a file in the demo's own folder where `null`. */
  readonly db: string | null;
  /** Fault points at which an agent's first process dies. */
  readonly faults: Partial<Readonly<Record<AgentName, string>>>;
}

export type AgentName = Role | 'outsider';

interface Agent {
  readonly name: AgentName;
  readonly dir: string;
  readonly proxy: RecordingProxy;
  /** The one that runs now, and before it those that died. */
  readonly processes: AgentProcess[];
}

function current({ processes }: Agent): AgentProcess {
  return processes.at(-1) as AgentProcess;
}

/** Everything a scenario plays in: two agents in their own processes, the systems they work with, and the wire between them. */
export class World {
  readonly dir: string;
  readonly systems: BusinessSystems;
  readonly ref: CaseRef;
  readonly #agents: ReadonlyMap<AgentName, Agent>;
  readonly #options: WorldOptions;

  private constructor(
    dir: string,
    systems: BusinessSystems,
    agents: ReadonlyMap<AgentName, Agent>,
    options: WorldOptions,
  ) {
    this.dir = dir;
    this.systems = systems;
    this.#options = options;
    this.#agents = agents;
    // A database may hold what earlier runs left: each has its own tenant.
    const tenant = options.db === null ? TENANT : newId('demo');
    this.ref = { tenant, root: this.urlOf('triage'), caseId: CASE_ID };
  }

  /** Nothing is left running or on disk when it fails. */
  static async create(options: WorldOptions): Promise<World> {
    const dir = await mkdtemp(join(tmpdir(), 'holdfast-demo-'));
    const systems = new BusinessSystems(sourceRecord({ injected: options.injected }));
    const names: AgentName[] = ['triage', 'billing', ...(options.outsider ? (['outsider'] as const) : [])];
    const agents = new Map(
      names.map((name) => [
        name,
        {
          name,
          dir: join(dir, name),
          proxy: new RecordingProxy(),
          processes: [new AgentProcess(name, options.faults[name])],
        },
      ]),
    );
    const stop = () => stopAll(dir, systems, agents);
    try {
      await Promise.all([systems.start(), ...[...agents.values()].map(({ proxy }) => proxy.start())]);
      const world = new World(dir, systems, agents, options);
      await world.#configure();
      await world.#start();
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
    return current(this.#get(name));
  }

  /** An agent that can be asked, whichever has just died. */
  witness(): AgentProcess {
    return this.triage.running ? this.triage : this.billing;
  }

  /** Starts an agent that died again, on the same folder and under the same URL. */
  async restart(name: AgentName, faults?: string): Promise<void> {
    const agent = this.#get(name);
    agent.processes.push(new AgentProcess(name, faults));
    await this.#startAgent(agent);
  }

  /** What all processes of an agent have written. */
  output(name: AgentName): Buffer {
    return Buffer.concat(this.#get(name).processes.map((process) => process.output()));
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
      const shared = this.#options.db ?? join(this.dir, 'ledger.db');
      await initAgent({
        dir,
        agent: name,
        url: this.urlOf(name),
        ledger: name === 'outsider' ? 'ledger.db' : shared,
        tenant: this.ref.tenant,
      });
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

  async #start(): Promise<void> {
    await Promise.all(this.agents().map((agent) => this.#startAgent(agent)));
    await this.triage.call('openCase', { caseId: CASE_ID });
    if (this.#agents.has('outsider')) {
      await this.triage.call('openCase', { caseId: FOREIGN_CASE_ID, owner: this.urlOf('outsider') });
    }
  }

  async #startAgent(agent: Agent): Promise<void> {
    const { name, dir, proxy } = agent;
    const { confined, injected } = this.#options;
    const { port } = await current(agent).start({
      dir,
      role: name,
      systemsUrl: this.systems.url,
      gullible: injected,
      dialOnly: confined && name === 'billing' ? this.agents().map((other) => hostOf(other.proxy.url)) : null,
    });
    proxy.forwardTo(port);
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
  await Promise.all([...agents.values()].map((agent) => current(agent).stop()));
  await Promise.all([systems.stop(), ...[...agents.values()].map(({ proxy }) => proxy.stop())]);
  await rm(dir, { recursive: true, force: true });
}
