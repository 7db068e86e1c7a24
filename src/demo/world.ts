import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CaseRef, newId, parsePerson } from '../core/index.js';
import { addPeer, initAgent, loadIdentity } from '../node/index.js';
import { AgentProcess } from './child.js';
import type { AgentSetup } from './commands.js';
import {
  CASE_ID,
  CONTRACT,
  FOREIGN_CASE_ID,
  FOREIGN_ROOT,
  sourceRecord,
  TENANT,
  UNKNOWN_CASE_ID,
} from './fixture.js';
import { Ledgers } from './ledgers.js';
import { RecordingProxy } from './proxy.js';
import type { Mode, Owner, Role } from './standing.js';
import { BusinessSystems } from './systems.js';

export interface WorldOptions {
  readonly mode: Mode;
  /** The customer's words hold an order to refund more than the cap, and billing obeys what it reads. */
  readonly injected: boolean;
  /** Nothing may be dialled but what the configuration names; see {@link AgentSetup.dialOnly}. */
  readonly confined: boolean;
  /** A third agent, configured as a peer of billing's without any permission, which owns a case of its own. */
  readonly outsider: boolean;
  /** A second billing agent, which takes the same cases. */
  readonly second: boolean;
  /** URLs of the databases that hold ledgers, by their agents, triage's being the shared one; files in the demo's own folder where absent. */
  readonly dbs: Partial<Readonly<Record<Role, string>>>;
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

/** Everything a scenario plays in: agents in their own processes, their ledgers, the systems they work with, and the wire between them. */
export class World {
  readonly dir: string;
  readonly systems: BusinessSystems;
  readonly #tenant: string;
  readonly #agents: ReadonlyMap<AgentName, Agent>;
  readonly #options: WorldOptions;
  #ledgers: Ledgers | null = null;

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
    this.#tenant = Object.keys(options.dbs).length === 0 ? TENANT : newId('demo');
  }

  /** Nothing is left running or on disk when it fails. */
  static async create(options: WorldOptions): Promise<World> {
    const dir = await mkdtemp(join(tmpdir(), 'holdfast-demo-'));
    const systems = new BusinessSystems(sourceRecord({ injected: options.injected }));
    const names: AgentName[] = [
      'triage',
      'billing',
      ...(options.second ? (['billing2'] as const) : []),
      ...(options.outsider ? (['outsider'] as const) : []),
    ];
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
    let world: World | null = null;
    try {
      await Promise.all([systems.start(), ...[...agents.values()].map(({ proxy }) => proxy.start())]);
      world = new World(dir, systems, agents, options);
      await world.#configure();
      await world.#start();
      return world;
    } catch (error) {
      await (world?.stop() ?? stopAll(dir, systems, agents));
      throw error;
    }
  }

  get mode(): Mode {
    return this.#options.mode;
  }

  get ref(): CaseRef {
    return this.refOf(CASE_ID);
  }

  /** Who opened a case is part of its name. With a ledger each, billing knows a case that triage does not own only if it did not come from triage. */
  refOf(caseId: string): CaseRef {
    const roots: Readonly<Record<string, string>> =
      this.mode === 'shared'
        ? {}
        : { [FOREIGN_CASE_ID]: this.urlOf('billing'), [UNKNOWN_CASE_ID]: FOREIGN_ROOT };
    return { tenant: this.#tenant, root: roots[caseId] ?? this.urlOf('triage'), caseId };
  }

  get ledgers(): Ledgers {
    if (!this.#ledgers) throw new Error('the ledgers are not open');
    return this.#ledgers;
  }

  /** From then on nothing in this process holds a ledger's files. */
  async closeLedgers(): Promise<void> {
    await this.#ledgers?.close();
    this.#ledgers = null;
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

  ownerOf(owner: string): Owner {
    const role = this.roles().find((name) => this.urlOf(name) === owner);
    if (role) return role;
    if (parsePerson(owner)?.node === this.urlOf('triage')) return 'human';
    throw new Error(`the case is owned by ${owner}, who has no part in this`);
  }

  /** The agents that can own the case, triage first. */
  roles(): readonly Role[] {
    return ['triage', 'billing', ...(this.#options.second ? (['billing2'] as const) : [])];
  }

  async stop(): Promise<void> {
    await this.closeLedgers();
    await stopAll(this.dir, this.systems, this.#agents);
  }

  #get(name: AgentName): Agent {
    const agent = this.#agents.get(name);
    if (!agent) throw new Error(`there is no ${name} in this world`);
    return agent;
  }

  /** Each agent has its folder, its key and its own ideas of its peers. */
  async #configure(): Promise<void> {
    const keys = new Map<AgentName, string>();
    for (const { name, dir } of this.agents()) {
      await initAgent({
        dir,
        agent: name,
        url: this.urlOf(name),
        ledger: this.#ledgerOf(name),
        tenant: this.#tenant,
        mode: this.mode,
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
    for (const receiver of this.roles().slice(1)) {
      known('triage', receiver, true);
      known(receiver, 'triage', true);
    }
    if (this.#agents.has('outsider')) known('billing', 'outsider', false);
  }

  async #start(): Promise<void> {
    await Promise.all(this.agents().map((agent) => this.#startAgent(agent)));
    this.#ledgers = await Ledgers.open(
      this.mode,
      this.roles().map((role) => [role, this.dirOf(role)]),
      (owner) => this.ownerOf(owner),
    );
    await this.#ledgers.heard(this.roles().map((role) => this.urlOf(role)));
    await this.triage.call('openCase', { caseId: CASE_ID });
    if (this.#agents.has('outsider')) {
      const opener = this.mode === 'shared' ? this.triage : this.billing;
      await opener.call('openCase', { caseId: FOREIGN_CASE_ID, owner: this.urlOf('outsider') });
    }
  }

  #ledgerOf(name: AgentName): string {
    const own = 'ledger.db';
    const { dbs } = this.#options;
    if (name === 'outsider') return own;
    return this.mode === 'shared' ? (dbs.triage ?? join(this.dir, own)) : (dbs[name] ?? own);
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
