import type { Contract } from '../contract/index.js';
import { HoldfastError } from '../core/index.js';
import type { HandoffHandler, ReceivedContract } from '../handoff/index.js';
import { nearestOf } from './nearest.js';

/** The contracts this agent knows, and of those the ones that it accepts handoffs under. */
export class ContractBook {
  readonly #known: Map<string, Contract>;
  readonly #received = new Map<string, ReceivedContract>();

  /** @throws contract_missing when one that is to be received is not known */
  constructor(known: ReadonlyMap<string, Contract>, receives: readonly string[]) {
    this.#known = new Map(known);
    for (const id of receives) this.#received.set(id, { contract: this.require(id), handler: {} });
  }

  received(id: string): ReceivedContract | null {
    return this.#received.get(id) ?? null;
  }

  listReceived(): Contract[] {
    return [...this.#received.values()].map(({ contract }) => contract);
  }

  /** Whether any handler does work on what is accepted. */
  hasWork(): boolean {
    return [...this.#received.values()].some(({ handler }) => handler.work !== undefined);
  }

  /** A contract given as such becomes known. @throws contract_missing, usage when it has a handler already */
  handle(contract: string | Contract, handler: HandoffHandler): void {
    const known = typeof contract === 'string' ? this.require(contract) : contract;
    const { check, work } = this.#received.get(known.id)?.handler ?? {};
    if (check || work) throw new HoldfastError('usage', `Handoffs under ${known.id} have a handler already.`);
    this.#known.set(known.id, known);
    this.#received.set(known.id, { contract: known, handler });
  }

  find(id: string): Contract | null {
    return this.#known.get(id) ?? null;
  }

  /** @throws contract_missing */
  require(id: string): Contract {
    const contract = this.find(id);
    if (contract) return contract;
    throw new HoldfastError('contract_missing', this.explainMissing(id));
  }

  /** A sentence for people: which contracts there are instead. */
  explainMissing(id: string): string {
    const known = [...this.#known.keys()];
    const nearest = nearestOf(known, id);
    const hint = nearest === null ? '' : ` Did you mean ${nearest}?`;
    return `No contract ${id} is configured; the key contracts names ${known.join(', ') || 'none'}.${hint}`;
  }
}
