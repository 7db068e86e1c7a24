import type { Crossed, EffectLine, Refused, RunState } from './expectation.js';
import { CASE_ID, IMPORTED_EPOCH } from './fixture.js';
import type { LedgerName, Mode, Owner, Standing } from './standing.js';

/** What is written down for all variants before any is played, and what single variants are put together from. */

/** What triage's case file holds and the contract does not name. */
export const WITHHELD = ['internal_note', 'transcript', 'facts.customer_phone', 'facts.callback_token'];

const HANDOFF_ID = `${CASE_ID}:${IMPORTED_EPOCH + 1}`;

/** The case at the moments of one handover. */
type Moment = 'kept' | 'offered' | 'accepted' | 'released' | 'escalated';

type Place = readonly [ledger: LedgerName, owner: Owner, epoch: number, held?: 'held'];

/** The case at one instant: its owner, who can act, and how each ledger that knows it has it. */
export function at(owner: Owner, acting: readonly Owner[], places: readonly Place[]): Standing {
  const ledgers = places.map(([ledger, owner, epoch, held]) => ({
    ledger,
    owner,
    epoch,
    held: held !== undefined,
  }));
  return { owner, epoch: Math.max(...ledgers.map(({ epoch }) => epoch)), acting, ledgers };
}

/** With a ledger each nobody can act while the offer is on its way: triage's is held from its intent until it has the answer. */
const MOMENTS: Readonly<Record<Mode, Readonly<Record<Moment, Standing>>>> = {
  shared: {
    kept: at('triage', ['triage'], [['shared', 'triage', 3]]),
    offered: at('triage', ['triage'], [['shared', 'triage', 3]]),
    accepted: at('billing', ['billing'], [['shared', 'billing', 4]]),
    released: at('billing', ['billing'], [['shared', 'billing', 4]]),
    escalated: at('human', ['human'], [['shared', 'human', 4]]),
  },
  separate: {
    kept: at('triage', ['triage'], [['triage', 'triage', 3]]),
    offered: at('triage', [], [['triage', 'triage', 3, 'held']]),
    accepted: at(
      'billing',
      ['billing'],
      [
        ['triage', 'triage', 3, 'held'],
        ['billing', 'billing', 4],
      ],
    ),
    released: at(
      'billing',
      ['billing'],
      [
        ['triage', 'billing', 4],
        ['billing', 'billing', 4],
      ],
    ),
    escalated: at('human', ['human'], [['triage', 'human', 4]]),
  },
};

/** How the case has to be found at these moments, one after another. */
export function seen(mode: Mode, ...moments: readonly [at: string, moment: Moment][]): RunState['trail'] {
  return moments.map(([at, moment]) => ({ at, ...MOMENTS[mode][moment] }));
}

/** Nothing moved: triage owns the case as before, and nobody did anything. Billing's own ledger never heard of it. */
export function kept(mode: Mode): RunState {
  return {
    ...MOMENTS[mode].kept,
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
    cases: mode === 'shared' ? { shared: [CASE_ID] } : { triage: [CASE_ID], billing: [] },
    contexts: 0,
    deliveries: { repeated: 0, conflicting: 0 },
    repliesLost: 0,
    strayDials: [],
    trail: [],
    writesRefused: 0,
  };
}

const REFUND: EffectLine = {
  operation: 'refund',
  amount: '49.00',
  currency: 'EUR',
  key: 'refund-pay_B',
  epoch: IMPORTED_EPOCH + 1,
  state: 'done',
};

const CROSSED: Crossed = {
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
};

/** Billing owns the case, refunded once and finished its work item; the transcript was fetched once, and triage's ledger knows. */
export function moved(mode: Mode, crossed: Partial<Crossed> = {}): RunState {
  return {
    ...kept(mode),
    ...MOMENTS[mode].released,
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
    crossed: { ...CROSSED, ...crossed },
    withheld: WITHHELD,
    evidenceFetches: 1,
    cases: mode === 'shared' ? { shared: [CASE_ID] } : { triage: [CASE_ID], billing: [CASE_ID] },
    contexts: 1,
  };
}

/** Triage's person owns the case: whom nobody took it from, and who has done nothing yet. */
export function escalated(mode: Mode): RunState {
  return {
    ...kept(mode),
    ...MOMENTS[mode].escalated,
    pointer: { status: 'owned_here', owner: 'human' },
  };
}

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

/** Closed before it was decided. */
export function withdrawn(attempt: number): RunState['decisions'][number] {
  return { handoffId: HANDOFF_ID, attempt, verdict: 'tombstone', code: 'withdrawn' };
}

/** A rejection that billing stored, which so closed the offer. */
export const final = (of: string, code: string, fields?: number): Refused => ({
  of,
  code,
  final: true,
  ...(fields === undefined ? {} : { fields }),
});

/** A rejection that the receiver could not store: it closes nothing. */
export const passing = (of: string, code: string): Refused => ({ of, code, final: false });
