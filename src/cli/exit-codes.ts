import { ERROR_TABLE, type ErrorCode } from '../core/index.js';

/** What the command's exit status says, once. Scripts may rely on these numbers. */
export const EXIT = {
  ok: 0,
  internal: 1,
  badInput: 2,
  fenced: 3,
  schemaNewer: 4,
  peer: 5,
  rejected: 6,
  undecided: 7,
  portTaken: 8,
  refused: 9,
  ledgerUnavailable: 10,
  auditBroken: 11,
  unsafe: 12,
  regressed: 13,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'It is done.',
  1: 'An internal failure; set HOLDFAST_DEBUG=1 to see the stack.',
  2: 'Wrong usage, bad input or a bad configuration; nothing was changed.',
  3: 'Refused by a fence: the epoch is not the current one, or the writer is not the owner.',
  4: 'The database was made by a newer version of Holdfast.',
  5: 'The peer cannot be reached, is not the configured one, or does not offer what is needed.',
  6: 'The receiver rejected the handoff; the case stays with its owner.',
  7: 'Not decided as far as is known; the offer stays open and can be sent again.',
  8: 'The port is in use.',
  9: 'Refused by another rule of the ledger, such as a cap, a prohibition or an open offer.',
  10: 'The ledger is busy, or cannot be read or written.',
  11: 'The audit chain does not verify.',
  12: 'The database is damaged, or may lose what it commits.',
  13: 'The ledger is not the one that was seen before, or older than what was seen of it.',
  130: 'Interrupted by SIGINT, SIGTERM or SIGHUP before it was done.',
};

/** Where a code does not follow from its class. */
const BY_CODE: Partial<Record<ErrorCode, ExitCode>> = {
  epoch_stale: EXIT.fenced,
  epoch_ahead: EXIT.fenced,
  not_owner: EXIT.fenced,
  case_unknown: EXIT.refused,
  case_closed: EXIT.refused,
  case_changed: EXIT.refused,
  case_quarantined: EXIT.refused,
  kind_unknown: EXIT.refused,
  chain_limit: EXIT.refused,
  chain_mismatch: EXIT.refused,
  offer_closed: EXIT.refused,
  offer_expired: EXIT.refused,
  withdrawn: EXIT.refused,
  duplicate_conflict: EXIT.refused,
  output_invalid: EXIT.badInput,
  audit_broken: EXIT.auditBroken,
  ledger_changed: EXIT.regressed,
  ledger_unsafe: EXIT.unsafe,
  schema_newer: EXIT.schemaNewer,
  port_taken: EXIT.portTaken,
  peer_key_mismatch: EXIT.peer,
  peer_incompatible: EXIT.peer,
  peer_unreachable: EXIT.peer,
  peer_error: EXIT.peer,
  unauthenticated: EXIT.peer,
  receipt_invalid: EXIT.peer,
  rate_limited: EXIT.peer,
  outcome_unknown: EXIT.undecided,
  busy: EXIT.ledgerUnavailable,
  ledger_unavailable: EXIT.ledgerUnavailable,
  internal: EXIT.internal,
};

/**
 * The exit status for an error raised in this process. A receiver's rejection is a result, not an error: its status is 6 whatever
 * its code; the same code raised here says that the input was found wrong before anything was sent.
 */
export function exitCodeOf(code: ErrorCode): ExitCode {
  return BY_CODE[code] ?? (ERROR_TABLE[code].cls === 'refusal' ? EXIT.refused : EXIT.badInput);
}
