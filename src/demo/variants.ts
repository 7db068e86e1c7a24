import {
  accepted,
  type Crossed,
  KEPT,
  MOVED,
  type Refused,
  type RunState,
  rejected,
  WITHHELD,
} from './expectation.js';
import { CASE_ID, FOREIGN_CASE_ID, UNKNOWN_CASE_ID } from './fixture.js';
import { receiverCrashes, senderCrashes } from './plays/crashes.js';
import { badAddress, badEpoch, badEvidence, badForm, badStanding } from './plays/hostile.js';
import {
  changedBody,
  correctedAttempt,
  foreignContext,
  injectedOrder,
  lostReply,
  recordsDisagree,
} from './plays/retries.js';
import { transfer } from './plays/transfer.js';
import type { Stage } from './stage.js';
import type { WorldOptions } from './world.js';

/** One way in which the scenario can go, with what it must come to written down before it is played. */
export interface Variant {
  readonly title: string;
  readonly world?: Partial<WorldOptions>;
  readonly play: (stage: Stage) => Promise<void>;
  readonly expected: RunState;
}

const final = (of: string, code: string, fields?: number): Refused => ({
  of,
  code,
  final: true,
  ...(fields === undefined ? {} : { fields }),
});
/** A rejection that the receiver could not store: it closes nothing. */
const passing = (of: string, code: string): Refused => ({ of, code, final: false });

const HAPPY: Variant = {
  title: 'a double charge goes from triage to billing',
  play: transfer,
  expected: {
    ...MOVED,
    refused: [{ code: 'epoch_stale', presented: 3, current: 4 }],
    trail: [
      { at: 'offer on its way', owner: 'triage', epoch: 3 },
      { at: 'evidence fetched', owner: 'triage', epoch: 3 },
      { at: 'answer on its way', owner: 'billing', epoch: 4 },
    ],
    writesRefused: 1,
  },
};

const V1: Variant = {
  title: "billing's records do not have the second payment",
  play: recordsDisagree,
  expected: {
    ...KEPT,
    offers: [{ attempt: 1, state: 'rejected', code: 'records_disagree' }],
    decisions: [rejected(1, 'records_disagree')],
    refused: [final('attempt 1', 'records_disagree', 1)],
    withheld: WITHHELD,
    evidenceFetches: 1,
    contexts: 1,
  },
};

const V1b: Variant = {
  title: 'triage corrects a rejected offer and sends it again',
  play: correctedAttempt,
  expected: {
    ...MOVED,
    offers: [...V1.expected.offers, { attempt: 2, state: 'accepted', code: null }],
    decisions: [...V1.expected.decisions, accepted(2)],
    refused: V1.expected.refused,
    crossed: {
      ...(MOVED.crossed as Crossed),
      done: ['account verified', 'duplicates found', 'payment records reconciled'],
    },
    evidenceFetches: 2,
    contexts: 2,
  },
};

const V2: Variant = {
  title: "billing's answer is lost, and the same bytes are sent again",
  play: lostReply,
  expected: { ...MOVED, deliveries: { repeated: 1, conflicting: 0 }, repliesLost: 1 },
};

const V3: Variant = {
  title: 'triage dies after its intent, with its offer on the way, and before the receipt',
  world: { faults: { triage: 'S2.after_commit=kill9' } },
  play: senderCrashes,
  expected: {
    ...MOVED,
    trail: [
      { at: 'intent stored', owner: 'triage', epoch: 3 },
      { at: 'offer on its way', owner: 'triage', epoch: 3 },
      { at: 'answer on its way', owner: 'billing', epoch: 4 },
    ],
  },
};

const V4: Variant = {
  title: 'billing dies before its acceptance commits, and before it answers',
  world: { faults: { billing: 'R3.before_commit=kill9' } },
  play: receiverCrashes,
  expected: {
    ...MOVED,
    trail: [
      { at: 'before the commit', owner: 'triage', epoch: 3 },
      { at: 'before the answer', owner: 'billing', epoch: 4 },
    ],
    evidenceFetches: 2,
  },
};

const V5: Variant = {
  title: 'evidence that is not what its reference says',
  play: badEvidence,
  expected: {
    ...KEPT,
    decisions: [
      rejected(1, 'evidence_expired'),
      rejected(2, 'evidence_hash_mismatch'),
      rejected(3, 'evidence_hash_missing'),
      rejected(4, 'evidence_size_mismatch'),
    ],
    refused: [
      final('URL expired', 'evidence_expired', 1),
      final('wrong hash', 'evidence_hash_mismatch', 1),
      final('hash missing', 'evidence_hash_missing', 1),
      final('larger than declared', 'evidence_size_mismatch', 1),
    ],
    evidenceFetches: 2,
    contexts: 4,
  },
};

const V6: Variant = {
  title: 'what is not exactly one envelope of a known version',
  play: badForm,
  expected: {
    ...KEPT,
    decisions: [rejected(1, 'schema_invalid'), rejected(2, 'schema_invalid')],
    refused: [
      passing('version 3', 'version_unknown'),
      passing('two envelope parts', 'envelope_multiple'),
      passing('no envelope part', 'envelope_missing'),
      final('an unknown field', 'schema_invalid', 1),
      final('five schema errors', 'schema_invalid', 3),
    ],
    contexts: 5,
  },
};

const V7: Variant = {
  title: 'who sends is not who may',
  world: { outsider: true },
  play: badStanding,
  expected: {
    ...KEPT,
    decisions: [
      rejected(1, 'peer_mismatch'),
      rejected(1, 'not_addressee'),
      rejected(1, 'peer_not_allowed', `${FOREIGN_CASE_ID}:4`),
      rejected(1, 'not_owner', `${FOREIGN_CASE_ID}:4`),
    ],
    refused: [
      final('a peer without permission', 'peer_not_allowed'),
      final('a peer in the name of another', 'peer_mismatch'),
      final('an agent that is not the owner', 'not_owner'),
      final('addressed to another agent', 'not_addressee'),
      { of: 'a token for another agent', code: 'unauthenticated' },
    ],
    cases: [CASE_ID, FOREIGN_CASE_ID],
    contexts: 2,
  },
};

const V8: Variant = {
  title: 'epochs and cases that are not those of the ledger',
  play: badEpoch,
  expected: {
    ...KEPT,
    decisions: [
      rejected(1, 'epoch_stale', `${CASE_ID}:3`),
      rejected(1, 'epoch_ahead', `${CASE_ID}:10`),
      rejected(1, 'case_unknown', `${UNKNOWN_CASE_ID}:4`),
    ],
    refused: [
      final('a stale epoch', 'epoch_stale'),
      final('a future epoch', 'epoch_ahead'),
      final('an unknown case', 'case_unknown'),
    ],
    contexts: 3,
  },
};

const V9: Variant = {
  title: 'the transcript says to ignore caps and refund 500.00',
  world: { injected: true },
  play: injectedOrder,
  expected: {
    ...MOVED,
    refused: [{ of: 'the order in the transcript', code: 'cap_exceeded' }],
    writesRefused: 1,
  },
};

const V12: Variant = {
  title: "the sender's contextId in the message",
  play: foreignContext,
  expected: { ...MOVED, refused: [{ of: 'a contextId of the sender', code: 'message_invalid' }] },
};

const V14: Variant = {
  title: 'the same key with another body',
  play: changedBody,
  expected: {
    ...MOVED,
    refused: [
      passing('another body first', 'duplicate_conflict'),
      passing('another body afterwards', 'duplicate_conflict'),
    ],
    evidenceFetches: 2,
    contexts: 3,
    deliveries: { repeated: 0, conflicting: 2 },
  },
};

const V15: Variant = {
  title: 'evidence URLs that lead where a node does not connect',
  world: { confined: true },
  play: badAddress,
  expected: {
    ...KEPT,
    decisions: [1, 2, 3, 4, 5].map((attempt) => rejected(attempt, 'evidence_forbidden')),
    refused: [
      final('the metadata address', 'evidence_forbidden', 1),
      final('the metadata address, over https', 'evidence_forbidden', 1),
      final('a loopback port that is not configured', 'evidence_forbidden', 1),
      final('a name that leads to the metadata address', 'evidence_forbidden', 1),
      final('a redirect to the metadata address', 'evidence_forbidden', 1),
    ],
    // The redirect itself, from a configured peer; where it leads is not asked.
    evidenceFetches: 1,
    contexts: 5,
  },
};

const VARIANTS: Readonly<Record<string, Variant>> = {
  V1,
  V1b,
  V2,
  V3,
  V4,
  V5,
  V6,
  V7,
  V8,
  V9,
  V12,
  V14,
  V15,
};

/** Name and title of every variant, in the order of the scenario. */
export function listVariants(): { readonly name: string; readonly title: string }[] {
  return Object.entries(VARIANTS).map(([name, { title }]) => ({ name, title }));
}

/**
 * The variant with this name in whatever case, or the plain scenario, which has none, where no name is given; `null` where there is
 * no such variant.
 */
export function findVariant(wanted: string | undefined): (Variant & { readonly name: string | null }) | null {
  if (wanted === undefined) return { ...HAPPY, name: null };
  const found = Object.entries(VARIANTS).find(([name]) => name.toLowerCase() === wanted.toLowerCase());
  return found ? { ...found[1], name: found[0] } : null;
}
