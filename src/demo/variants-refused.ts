import { accepted, escalated, final, kept, moved, passing, rejected, seen, WITHHELD } from './expected.js';
import { CASE_ID, FOREIGN_CASE_ID, UNKNOWN_CASE_ID } from './fixture.js';
import { badAddress, badEpoch, badEvidence, badForm, badStanding } from './plays/hostile.js';
import { escalation, recordsDisagree } from './plays/retries.js';
import type { Variant } from './variant.js';

/** Variants about what billing refuses. */

export const V1: Variant = {
  title: "billing's records do not have the second payment",
  play: recordsDisagree,
  expected: (mode) => ({
    ...kept(mode),
    offers: [{ attempt: 1, state: 'rejected', code: 'records_disagree' }],
    decisions: [rejected(1, 'records_disagree')],
    refused: [final('attempt 1', 'records_disagree', 1)],
    withheld: WITHHELD,
    evidenceFetches: 1,
    contexts: 1,
  }),
};

export const V1c: Variant = {
  title: 'triage gives the case to a person instead',
  play: escalation,
  expected: (mode) => ({
    ...escalated(mode),
    offers: [{ attempt: 1, state: 'rejected', code: 'records_disagree' }],
    decisions: [rejected(1, 'records_disagree')],
    refused: [
      final('attempt 1', 'records_disagree', 1),
      { of: 'a note by triage', code: 'epoch_stale', presented: 3, current: 4 },
    ],
    withheld: WITHHELD,
    evidenceFetches: 1,
    contexts: 1,
    trail: seen(mode, ['after the rejection', 'kept'], ['with a person', 'escalated']),
    writesRefused: 1,
  }),
};

export const V5: Variant = {
  title: 'evidence that is not what its reference says',
  play: badEvidence,
  expected: (mode) => ({
    ...kept(mode),
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
  }),
};

export const V6: Variant = {
  title: 'what is not exactly one envelope of a known version',
  play: badForm,
  expected: (mode) => ({
    ...kept(mode),
    decisions: [rejected(1, 'schema_invalid'), rejected(2, 'schema_invalid')],
    refused: [
      passing('version 3', 'version_unknown'),
      passing('two envelope parts', 'envelope_multiple'),
      passing('no envelope part', 'envelope_missing'),
      final('an unknown field', 'schema_invalid', 1),
      final('five schema errors', 'schema_invalid', 3),
    ],
    contexts: 5,
  }),
};

export const V7: Variant = {
  title: 'who sends is not who may',
  world: { outsider: true },
  play: badStanding,
  expected: (mode) => ({
    ...kept(mode),
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
    cases:
      mode === 'shared'
        ? { shared: [CASE_ID, FOREIGN_CASE_ID] }
        : { triage: [CASE_ID], billing: [FOREIGN_CASE_ID] },
    contexts: 2,
  }),
};

const OTHER_EPOCHS = {
  decisions: [rejected(1, 'epoch_stale', `${CASE_ID}:3`), rejected(1, 'epoch_ahead', `${CASE_ID}:10`)],
  refused: [final('a stale epoch', 'epoch_stale'), final('a future epoch', 'epoch_ahead')],
};
const NO_SUCH_CASE = rejected(1, 'case_unknown', `${UNKNOWN_CASE_ID}:4`);

/**
 * To billing's own ledger a case that triage opened is no mistake but first contact, and so CASE-7001 comes in; one that somebody else
 * opened is refused, as nothing proves that triage got it from there.
 */
export const V8: Variant = {
  title: 'epochs and cases that are not those of the ledger',
  play: badEpoch,
  expected: (mode) =>
    mode === 'shared'
      ? {
          ...kept(mode),
          decisions: [...OTHER_EPOCHS.decisions, NO_SUCH_CASE],
          refused: [...OTHER_EPOCHS.refused, final('an unknown case', 'case_unknown')],
          contexts: 3,
        }
      : {
          ...moved(mode),
          decisions: [accepted(1), ...OTHER_EPOCHS.decisions, NO_SUCH_CASE],
          refused: [...OTHER_EPOCHS.refused, final('an unknown case of another root', 'case_unknown')],
          contexts: 4,
        },
};

export const V15: Variant = {
  title: 'evidence URLs that lead where a node does not connect',
  world: { confined: true },
  play: badAddress,
  expected: (mode) => ({
    ...kept(mode),
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
  }),
};
