import { canonical, type Money } from '../core/index.js';
import type { EffectState, OfferState, Verdict, WorkState } from '../ledger/index.js';
import type { Leak } from './leaks.js';
import type { LedgerName, Owner, Standing } from './standing.js';
import type { Attempt } from './systems.js';

/** Something that was refused, by the ledger or by the receiver. */
export interface Refused {
  /** Which of a variant's injections this answers. */
  readonly of?: string;
  readonly code: string;
  readonly presented?: number;
  readonly current?: number;
  /** Whether the receiver stored it, so that it closed the offer; absent where it was no verdict on an offer. */
  readonly final?: boolean;
  /** How many field errors came with it. */
  readonly fields?: number;
}

export interface EffectLine {
  readonly operation: string;
  readonly amount: string;
  readonly currency: string;
  readonly key: string;
  readonly epoch: number;
  readonly state: EffectState;
}

/** The accepted envelope, as far as it does not change from run to run. */
export interface Crossed {
  readonly goal: string;
  readonly done: readonly string[];
  readonly remaining: readonly string[];
  readonly openQuestions: readonly string[];
  readonly facts: readonly { readonly key: string; readonly source: string; readonly verified: boolean }[];
  readonly caps: Readonly<Record<string, Money>>;
  readonly prohibitions: readonly string[];
  /** Whether the deadline is an absolute time. */
  readonly deadline: boolean;
}

/**
 * What a run leaves behind: written down for each variant before it runs, read from ledger, wire and business systems after it.
 * A run is good only if the two are equal, so that a failure that looks graceful cannot pass.
 */
export interface RunState extends Standing {
  /** What triage can tell the customer. */
  readonly pointer: { readonly status: string; readonly owner: Owner };
  /** In triage's ledger. */
  readonly offers: readonly {
    readonly attempt: number;
    readonly state: OfferState;
    readonly code: string | null;
  }[];
  /** Verdicts in the receivers' ledgers, case by case, in the order in which they were made. */
  readonly decisions: readonly {
    readonly handoffId: string;
    readonly attempt: number;
    readonly verdict: Verdict;
    readonly code: string | null;
  }[];
  readonly refused: readonly Refused[];
  readonly work: readonly WorkState[];
  readonly notes: number;
  readonly effects: readonly EffectLine[];
  /** What the fake business systems were asked to do, refused and repeated attempts included: the permitted effects. */
  readonly attempts: readonly Attempt[];
  /** What its owner holds of the case, and what redaction kept back, by path. */
  readonly crossed: Crossed | null;
  readonly withheld: readonly string[];
  readonly evidenceFetches: number;
  /** Cases, ledger by ledger. */
  readonly cases: Readonly<Partial<Record<LedgerName, readonly string[]>>>;
  /** A2A contexts that billing opened for triage. */
  readonly contexts: number;
  readonly deliveries: { readonly repeated: number; readonly conflicting: number };
  /** Answers of billing's that never reached triage. */
  readonly repliesLost: number;
  /** Names and addresses that billing's process was made to look up or dial besides those its configuration names. */
  readonly strayDials: readonly string[];
  /** Who owned the case, and could act, at each moment at which it could have been seen wrong. */
  readonly trail: readonly (Standing & { readonly at: string })[];
  /** Writes that were refused and audited. */
  readonly writesRefused: number;
}

/** What was found after a run. */
export interface Observation {
  readonly state: RunState;
  /** The owner as the ledger names it. */
  readonly owner: string;
  readonly audit: { readonly verified: boolean; readonly entries: number };
  /** How often it was looked who can cause effects, and when more than one could. */
  readonly observed: { readonly instants: number; readonly overlaps: readonly string[] };
  readonly leaks: readonly Leak[];
}

export interface Outcome extends Observation {
  readonly ok: boolean;
  /** Every difference from what was written down; empty where `ok`. */
  readonly problems: readonly string[];
}

/** Every difference between what was written down and what was found, one line each. */
export function compareStates(expected: RunState, found: RunState): string[] {
  return Object.entries(expected).flatMap(([name, value]) => {
    const actual = found[name as keyof RunState];
    if (canonical(value) === canonical(actual)) return [];
    return [`${name}: expected ${canonical(value)}, found ${canonical(actual)}`];
  });
}
