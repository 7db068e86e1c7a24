import { canonical, type Money } from '../core/index.js';
import type { EffectState, OfferState, Verdict, WorkState } from '../ledger/index.js';
import { CASE_ID, IMPORTED_EPOCH } from './fixture.js';
import type { Leak } from './leaks.js';
import type { Attempt } from './systems.js';

export type Role = 'triage' | 'billing';

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
export interface RunState {
  readonly owner: Role;
  readonly epoch: number;
  /** What triage can tell the customer. */
  readonly pointer: { readonly status: string; readonly owner: Role };
  readonly offers: readonly {
    readonly attempt: number;
    readonly state: OfferState;
    readonly code: string | null;
  }[];
  /** Verdicts in the ledger, case by case, in the order in which they were made. */
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
  /** What billing holds of the case, and what redaction kept back, by path. */
  readonly crossed: Crossed | null;
  readonly withheld: readonly string[];
  readonly evidenceFetches: number;
  /** Cases in the ledger. */
  readonly cases: readonly string[];
  /** A2A contexts that billing opened for triage. */
  readonly contexts: number;
  readonly deliveries: { readonly repeated: number; readonly conflicting: number };
  /** Answers of billing's that never reached triage. */
  readonly repliesLost: number;
  /** Names and addresses that billing's process was made to look up or dial besides those its configuration names. */
  readonly strayDials: readonly string[];
  /** Who owned the case at each moment at which it could have been seen wrong. */
  readonly trail: readonly { readonly at: string; readonly owner: Role; readonly epoch: number }[];
  /** Writes the ledger refused and audited. */
  readonly writesRefused: number;
}

/** What was found after a run. */
export interface Observation {
  readonly state: RunState;
  readonly audit: { readonly verified: boolean; readonly entries: number };
  readonly leaks: readonly Leak[];
}

export interface Outcome extends Observation {
  readonly ok: boolean;
  /** Every difference from what was written down; empty where `ok`. */
  readonly problems: readonly string[];
}

/** What triage's case file holds and the contract does not name. */
export const WITHHELD = ['internal_note', 'transcript', 'facts.customer_phone', 'facts.callback_token'];

const HANDOFF_ID = `${CASE_ID}:${IMPORTED_EPOCH + 1}`;

/** Nothing moved: triage owns the case as before, and nobody did anything. */
export const KEPT: RunState = {
  owner: 'triage',
  epoch: IMPORTED_EPOCH,
  pointer: { status: 'owned_here', owner: 'triage' },
  offers: [],
  decisions: [],
  refused: [],
  work: [],
  notes: 0,
  effects: [],
  attempts: [],
  crossed: null,
  withheld: [],
  evidenceFetches: 0,
  cases: [CASE_ID],
  contexts: 0,
  deliveries: { repeated: 0, conflicting: 0 },
  repliesLost: 0,
  strayDials: [],
  trail: [],
  writesRefused: 0,
};

const REFUND: EffectLine = {
  operation: 'refund',
  amount: '49.00',
  currency: 'EUR',
  key: 'refund-pay_B',
  epoch: IMPORTED_EPOCH + 1,
  state: 'done',
};

/** Billing owns the case, refunded once and finished its work item; the transcript was fetched once. */
export const MOVED: RunState = {
  ...KEPT,
  owner: 'billing',
  epoch: IMPORTED_EPOCH + 1,
  pointer: { status: 'handed_off', owner: 'billing' },
  offers: [{ attempt: 1, state: 'accepted', code: null }],
  decisions: [accepted(1)],
  work: ['done'],
  effects: [REFUND],
  attempts: [
    {
      system: 'payments',
      operation: 'refund',
      key: REFUND.key,
      amount: REFUND.amount,
      currency: REFUND.currency,
      outcome: 'done',
    },
  ],
  crossed: {
    goal: 'refund duplicate charge',
    done: ['account verified', 'duplicates found'],
    remaining: ['decide on the refund', 'issue the refund'],
    openQuestions: ['Is the second payment the duplicate, or a purchase of its own?'],
    facts: [
      { key: 'account_id', source: 'auth', verified: true },
      { key: 'payment_a', source: 'payments', verified: true },
      { key: 'payment_b', source: 'payments', verified: true },
      { key: 'disputed_amount', source: 'customer', verified: false },
    ],
    caps: { refund: { amount: '100.00', currency: 'EUR' } },
    prohibitions: ['goodwill_credit'],
    deadline: true,
  },
  withheld: WITHHELD,
  evidenceFetches: 1,
  contexts: 1,
};

export function accepted(attempt: number): RunState['decisions'][number] {
  return { handoffId: HANDOFF_ID, attempt, verdict: 'accepted', code: null };
}

export function rejected(
  attempt: number,
  code: string,
  handoffId = HANDOFF_ID,
): RunState['decisions'][number] {
  return { handoffId, attempt, verdict: 'rejected', code };
}

/** Every difference between what was written down and what was found, one line each. */
export function compareStates(expected: RunState, found: RunState): string[] {
  return Object.entries(expected).flatMap(([name, value]) => {
    const actual = found[name as keyof RunState];
    if (canonical(value) === canonical(actual)) return [];
    return [`${name}: expected ${canonical(value)}, found ${canonical(actual)}`];
  });
}
