import { setTimeout as sleep } from 'node:timers/promises';
import { type CaseRef, silentLogger } from '../core/index.js';
import type { CaseSnapshot, TaskRow } from '../ledger/index.js';
import { type Holdfast, openHoldfast } from '../node/index.js';
import {
  type LedgerName,
  type Mode,
  type Owner,
  type Position,
  type Role,
  type Standing,
  standingOf,
} from './standing.js';

const HEARD_MS = 10_000;

/** One ledger, read from outside the processes that write it: an agent that has died is read all the same. */
interface Reader {
  readonly name: LedgerName;
  readonly holdfast: Holdfast;
}

/** All ledgers of a world. In the mode `shared` there is one, whoever is asked for. */
export class Ledgers {
  readonly #readers: readonly Reader[];
  readonly #ownerOf: (owner: string) => Owner;

  private constructor(readers: readonly Reader[], ownerOf: (owner: string) => Owner) {
    this.#readers = readers;
    this.#ownerOf = ownerOf;
  }

  /** @param dirs the folders of the agents, the sender of offers first */
  static async open(
    mode: Mode,
    dirs: readonly (readonly [Role, string])[],
    ownerOf: (owner: string) => Owner,
  ): Promise<Ledgers> {
    const readers: Reader[] = [];
    for (const [role, dir] of mode === 'shared' ? dirs.slice(0, 1) : dirs) {
      const holdfast = await openHoldfast({ dir, logger: silentLogger });
      readers.push({ name: mode === 'shared' ? 'shared' : role, holdfast });
    }
    return new Ledgers(readers, ownerOf);
  }

  get names(): readonly LedgerName[] {
    return this.#readers.map(({ name }) => name);
  }

  /** The ledger that this agent works with. */
  nameFor(role: Role): LedgerName {
    return this.names.includes(role) ? role : 'shared';
  }

  snapshot(name: LedgerName, ref: CaseRef): Promise<CaseSnapshot> {
    return this.#get(name).ledger.snapshot(ref);
  }

  async listCases(name: LedgerName): Promise<string[]> {
    const rows = await this.#get(name).ledger.listCases(this.#tenant(name));
    return rows.map(({ ref }) => ref.caseId).sort();
  }

  /** Resolves once each of these has heard from its peers, before which it decides nothing; or after some seconds all the same. */
  async heard(agents: readonly string[]): Promise<void> {
    const until = performance.now() + HEARD_MS;
    const waits = async () => {
      const each = this.#readers.flatMap(({ holdfast }) =>
        agents.map((one) => holdfast.ledger.listAwaited(one)),
      );
      return (await Promise.all(each)).flat().some(({ state }) => state === 'waiting');
    };
    while ((await waits()) && performance.now() < until) await sleep(20);
  }

  /** Under which the agent makes its offers, as its own ledger says; any where no other ledger has a part in its cases. */
  async incarnationOf(name: LedgerName, agent: string): Promise<string> {
    return (await this.#get(name).ledger.getIncarnation(agent))?.incarnation ?? 'elsewhere';
  }

  /** Tasks that are kept there for a peer. */
  async listTasks(name: LedgerName, peer: string): Promise<TaskRow[]> {
    const { tasks } = await this.#get(name).ledger.listTasks({
      tenant: this.#tenant(name),
      peer,
      limit: 100,
    });
    return tasks;
  }

  /**
   * The case in all ledgers, as at one instant. They are read one after another, receivers first: whatever a receiver can do it can do
   * because its sender's ledger was held before, and stays so until the owner has moved there too.
   */
  async standing(ref: CaseRef): Promise<Standing> {
    const positions: Position[] = [];
    for (const { name, holdfast } of [...this.#readers].reverse()) {
      const { case: row, offers } = await holdfast.ledger.snapshot(ref);
      if (!row) continue;
      const held = name !== 'shared' && offers.some(({ closedAt }) => closedAt === null);
      positions.unshift({ ledger: name, owner: this.#ownerOf(row.owner), epoch: row.epoch, held });
    }
    return standingOf(positions);
  }

  async close(): Promise<void> {
    await Promise.all(this.#readers.map(({ holdfast }) => holdfast.close()));
  }

  #get(name: LedgerName): Holdfast {
    const reader = this.#readers.find((one) => one.name === name);
    if (!reader) throw new Error(`there is no ledger ${name} in this world`);
    return reader.holdfast;
  }

  #tenant(name: LedgerName): string {
    return this.#get(name).config.tenant;
  }
}
