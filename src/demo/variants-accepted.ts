import { accepted, final, moved, passing, rejected, seen } from './expected.js';
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
  title: 'triage dies after its intent, with its offer on the way, and before the receipt',
  world: { faults: { triage: 'S2.after_commit=kill9' } },
  play: senderCrashes,
  expected: (mode) => ({
    ...moved(mode),
    trail: seen(
      mode,
      ['intent stored', 'offered'],
      ['offer on its way', 'offered'],
      ['answer on its way', 'accepted'],
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
