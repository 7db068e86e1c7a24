import type { KindDefinition } from '../ledger/index.js';

export type Mode = KindDefinition['mode'];

/** Agents that can own the case. */
export type Role = 'triage' | 'billing' | 'billing2';

/** A `human` is a person of triage's. */
export type Owner = Role | 'human';

/** The one that all agents use, or the one of the agent named. */
export type LedgerName = 'shared' | Role;

/** How one ledger has the case. */
export interface Position {
  readonly ledger: LedgerName;
  readonly owner: Owner;
  readonly epoch: number;
  /** Whether an open offer keeps the owner from starting effects here: its receiver may have accepted, and this ledger would not know. */
  readonly held: boolean;
}

/** The case at one instant, in all ledgers that know it. */
export interface Standing {
  /** By the ledger that knows most. */
  readonly owner: Owner;
  readonly epoch: number;
  /** Who can cause effects: never more than one. */
  readonly acting: readonly Owner[];
  readonly ledgers: readonly Position[];
}

/** Who can act in a ledger is its owner of the case, and in a ledger of one's own only oneself. @throws Error where no ledger knows the case */
export function standingOf(ledgers: readonly Position[]): Standing {
  const [first, ...more] = ledgers;
  if (!first) throw new Error('no ledger knows the case');
  const { owner, epoch } = more.reduce((most, one) => (one.epoch > most.epoch ? one : most), first);
  const acting = ledgers.filter(({ ledger, owner, held }) => !held && keeps(ledger, owner));
  return { owner, epoch, acting: acting.map(({ owner }) => owner), ledgers };
}

function keeps(ledger: LedgerName, owner: Owner): boolean {
  return ledger === 'shared' || ledger === (owner === 'human' ? 'triage' : owner);
}
