import { accepted, at, final, moved, passing, rejected, seen, withdrawn } from './expected.js';
import { CASE_ID } from './fixture.js';
import { secondCandidate } from './plays/candidates.js';
import { receiverCrashes, senderCrashes } from './plays/crashes.js';
import { changedBody, correctedAttempt, foreignContext, injectedOrder, lostReply } from './plays/retries.js';
import { transfer } from './plays/transfer.js';
import type { Variant } from './variant.js';

/** Variants in which billing ends up with the case. */

const STALE = { code: 'epoch_stale', presented: 3, current: 4 };
/** Triage's ledger does not know yet whether billing has accepted. */
const HELD = { of: 'a refund by triage', code: 'effects_frozen' };

export const HAPPY: Variant = {
  title: 'a double charge goes from triage to billing',
  play: transfer,
  expected: (mode) => ({
    ...moved(mode),
    refused: [...(mode === 'shared' ? [] : [HELD]), STALE],
    trail: seen(
      mode,
      ['offer on its way', 'offered'],
      ['evidence fetched', 'offered'],
      ['answer on its way', 'accepted'],
    ),
    writesRefused: mode === 'shared' ? 1 : 2,
  }),
};

export const V1b: Variant = {
  title: 'triage corrects a rejected offer and sends it again',
  play: correctedAttempt,
  expected: (mode) => ({
    ...moved(mode, { done: ['account verified', 'duplicates found', 'payment records reconciled'] }),
    offers: [
      { attempt: 1, state: 'rejected', code: 'records_disagree' },
      { attempt: 2, state: 'accepted', code: null },
    ],
    decisions: [rejected(1, 'records_disagree'), accepted(2)],
    refused: [final('attempt 1', 'records_disagree', 1)],
    evidenceFetches: 2,
    contexts: 2,
  }),
};

export const V2: Variant = {
  title: "billing's answer is lost, and the same bytes are sent again",
  play: lostReply,
  expected: (mode) => ({ ...moved(mode), deliveries: { repeated: 1, conflicting: 0 }, repliesLost: 1 }),
};

export const V3: Variant = {
  title:
    'triage dies after its intent, with its offer on the way, after the acceptance, and before it lets go',
  world: { faults: { triage: 'S2.after_commit=kill9' } },
  play: senderCrashes,
  expected: (mode) => ({
    ...moved(mode),
    trail: seen(
      mode,
      ['intent stored', 'offered'],
      ['offer on its way', 'offered'],
      ['answer on its way', 'accepted'],
      ['receipt not stored', 'accepted'],
    ),
  }),
};

export const V4: Variant = {
  title: 'billing dies before its acceptance commits, and before it answers',
  world: { faults: { billing: 'R3.before_commit=kill9' } },
  play: receiverCrashes,
  expected: (mode) => ({
    ...moved(mode),
    trail: seen(mode, ['before the commit', 'offered'], ['before the answer', 'accepted']),
    evidenceFetches: 2,
  }),
};

export const V9: Variant = {
  title: 'the transcript says to ignore caps and refund 500.00',
  world: { injected: true },
  play: injectedOrder,
  expected: (mode) => ({
    ...moved(mode),
    refused: [{ of: 'the order in the transcript', code: 'cap_exceeded' }],
    writesRefused: 1,
  }),
};

/** The case at the moments of V10. In one ledger the offer to the first holds nobody back. */
const WITH_SECOND = {
  shared: {
    offered: at('triage', ['triage'], [['shared', 'triage', 3]]),
    accepted: at('billing2', ['billing2'], [['shared', 'billing2', 4]]),
    released: at('billing2', ['billing2'], [['shared', 'billing2', 4]]),
  },
  separate: {
    offered: at('triage', [], [['triage', 'triage', 3, 'held']]),
    accepted: at(
      'billing2',
      ['billing2'],
      [
        ['triage', 'triage', 3, 'held'],
        ['billing2', 'billing2', 4],
      ],
    ),
    released: at(
      'billing2',
      ['billing2'],
      [
        ['triage', 'billing2', 4],
        ['billing2', 'billing2', 4],
      ],
    ),
  },
} as const;

export const V10: Variant = {
  title: 'billing does not accept in time, and a second billing agent is asked',
  world: { second: true, faults: { billing: 'R3.before_commit=stop' } },
  play: secondCandidate,
  expected: (mode) => {
    const { offered, accepted: taken, released } = WITH_SECOND[mode];
    const second = [
      { at: 'second offer on its way', ...offered },
      { at: 'answer of the second', ...taken },
    ];
    const first = { at: 'no answer', ...offered };
    return {
      ...moved(mode),
      ...released,
      pointer: { status: 'handed_off', owner: 'billing2' },
      evidenceFetches: 2,
      contexts: 2,
      ...(mode === 'shared'
        ? {
            offers: [
              { attempt: 1, state: 'expired', code: null },
              { attempt: 2, state: 'accepted', code: null },
            ],
            decisions: [withdrawn(1), accepted(2)],
            refused: [final('the first offer, once more', 'withdrawn')],
            // The late acceptance, which the ledger notes as it refuses it, and the offer that comes once more.
            deliveries: { repeated: 2, conflicting: 0 },
            trail: [first, ...second, { at: 'late acceptance', ...released }],
          }
        : {
            offers: [
              { attempt: 1, state: 'rejected', code: 'offer_expired' },
              { attempt: 2, state: 'accepted', code: null },
            ],
            decisions: [rejected(1, 'offer_expired'), accepted(2)],
            refused: [final('the first offer, once more', 'offer_expired')],
            deliveries: { repeated: 1, conflicting: 0 },
            trail: [first, { at: 'in doubt', ...offered }, { at: 'late acceptance', ...offered }, ...second],
            cases: { triage: [CASE_ID], billing: [], billing2: [CASE_ID] },
          }),
    };
  },
};

export const V12: Variant = {
  title: "the sender's contextId in the message",
  play: foreignContext,
  expected: (mode) => ({
    ...moved(mode),
    refused: [{ of: 'a contextId of the sender', code: 'message_invalid' }],
  }),
};

/**
 * Where both use one ledger, it knows which body was offered. Billing's own learns it from what arrives first: there the other body comes
 * while the genuine offer is being decided.
 */
export const V14: Variant = {
  title: 'the same key with another body',
  play: changedBody,
  expected: (mode) => ({
    ...moved(mode),
    refused: [
      passing(`another body ${mode === 'shared' ? 'first' : 'meanwhile'}`, 'duplicate_conflict'),
      passing('another body afterwards', 'duplicate_conflict'),
    ],
    evidenceFetches: mode === 'shared' ? 2 : 1,
    contexts: 3,
    deliveries: { repeated: 0, conflicting: 2 },
  }),
};
