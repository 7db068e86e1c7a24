/**
 * The one table of error codes. A code is stable and public; each transport keeps only its own mapping
 * (A2A ErrorInfo, HTTP status, exit code), so that a meaning is written down exactly once.
 */

/** What sending again can do: nothing, the identical request later, or only a corrected request. */
export type Retry = 'never' | 'same' | 'changed';
/** Who has to act before this can succeed. */
export type Actor = 'sender' | 'receiver' | 'operator' | 'developer';
/**
 * `rejection`: a verdict on an offer. `refusal`: the ledger refused a write. `error`: nothing was decided.
 * `local`: found before anything left this process.
 */
export type ErrorClass = 'rejection' | 'refusal' | 'error' | 'local';

interface CodeInfo {
  readonly cls: ErrorClass;
  readonly retry: Retry;
  readonly actor: Actor;
  readonly meaning: string;
}

const rejection = (retry: Retry, actor: Actor, meaning: string): CodeInfo => ({
  cls: 'rejection',
  retry,
  actor,
  meaning,
});
const refusal = (retry: Retry, actor: Actor, meaning: string): CodeInfo => ({
  cls: 'refusal',
  retry,
  actor,
  meaning,
});
const error = (retry: Retry, actor: Actor, meaning: string): CodeInfo => ({
  cls: 'error',
  retry,
  actor,
  meaning,
});
const local = (retry: Retry, actor: Actor, meaning: string): CodeInfo => ({
  cls: 'local',
  retry,
  actor,
  meaning,
});

/** Every code with its class, what a retry can do, who must act, and its meaning. */
export const ERROR_TABLE = {
  // The envelope as a document.
  envelope_missing: rejection('changed', 'sender', 'The message carries no envelope part.'),
  envelope_multiple: rejection('changed', 'sender', 'The message carries more than one envelope part.'),
  version_unknown: rejection('changed', 'sender', 'The envelope version is not one this node reads.'),
  schema_invalid: rejection('changed', 'sender', 'The envelope does not have the required form.'),
  message_id_mismatch: rejection('changed', 'sender', 'messageId is not handoff_id:attempt.'),
  envelope_too_large: rejection('changed', 'sender', 'The envelope is larger than the limit.'),
  fact_unsourced: rejection('changed', 'sender', 'A fact names no source.'),
  evidence_inline: rejection(
    'changed',
    'sender',
    'Bulky content or a transcript is inline, not by reference.',
  ),
  // Who may hand what to whom.
  not_addressee: rejection('changed', 'sender', 'The envelope is addressed to another agent.'),
  peer_mismatch: rejection('changed', 'sender', 'The authenticated peer is not the from_agent.'),
  peer_not_allowed: rejection('never', 'operator', 'This peer may not hand this over to this skill.'),
  form_mismatch: rejection(
    'changed',
    'sender',
    'The envelope is thin and its contract is not, or the other way round.',
  ),
  thin_separate: rejection(
    'changed',
    'operator',
    'A thin envelope says nothing about its case, so it is of no use to a receiver with a ledger of its own.',
  ),
  contract_unknown: rejection('changed', 'sender', 'The contract or its version is not accepted here.'),
  skill_unknown: rejection('changed', 'sender', 'The skill is not offered here.'),
  kind_unknown: rejection('changed', 'operator', 'The kind of case is not known to this ledger.'),
  chain_mismatch: rejection('changed', 'sender', 'The chain is not the one the ledger holds.'),
  chain_limit: rejection(
    'never',
    'operator',
    'The case has passed through as many agents, or handovers, as its kind allows.',
  ),
  // Ownership.
  case_unknown: rejection('never', 'sender', 'The case is not in this ledger.'),
  case_closed: rejection('never', 'sender', 'The case is closed.'),
  not_owner: rejection('never', 'sender', 'The writer or sender is not the owner of the case.'),
  epoch_stale: rejection('never', 'sender', 'The epoch presented is older than the current one.'),
  epoch_ahead: rejection('changed', 'sender', 'The epoch presented is newer than the current one.'),
  provenance_unknown: rejection(
    'never',
    'operator',
    'A receipt of the provenance is of an agent that is not configured here.',
  ),
  provenance_invalid: rejection(
    'changed',
    'sender',
    'A receipt of the provenance does not verify, or is of another case.',
  ),
  offer_expired: rejection('changed', 'sender', 'The offer arrived past its accept_by.'),
  offer_closed: rejection('changed', 'sender', 'The offer is not the open offer of the case in the ledger.'),
  case_changed: rejection('changed', 'sender', 'An effect was started after the offer was made.'),
  withdrawn: rejection('never', 'sender', 'The offer was withdrawn before it was decided.'),
  duplicate_conflict: rejection('never', 'sender', 'The same offer key was used with other bytes.'),
  // Evidence.
  evidence_empty: rejection('changed', 'sender', 'The contract wants evidence and none was given.'),
  evidence_hash_missing: rejection('changed', 'sender', 'A reference carries no sha256.'),
  evidence_hash_mismatch: rejection('changed', 'sender', 'The bytes behind a reference have another sha256.'),
  evidence_size_mismatch: rejection(
    'changed',
    'sender',
    'The bytes behind a reference differ in size from what was declared.',
  ),
  evidence_too_large: rejection('changed', 'sender', 'A reference is larger than the limit.'),
  evidence_media_type: rejection(
    'changed',
    'sender',
    'A reference has a media type that is not the declared or a permitted one.',
  ),
  evidence_expired: rejection('changed', 'sender', 'A reference has expired, or would before accept_by.'),
  evidence_unreadable: rejection('changed', 'sender', 'A reference could not be read by this receiver.'),
  evidence_forbidden: rejection('changed', 'sender', 'A reference points where this node does not connect.'),
  evidence_revoked: rejection('changed', 'sender', 'A reference was revoked by the agent that gave it.'),
  evidence_version: rejection(
    'changed',
    'sender',
    'A reference is not the artifact version the envelope names.',
  ),
  // The contract.
  constraint_missing: rejection('changed', 'sender', 'A constraint that the contract requires is missing.'),
  constraint_invalid: rejection(
    'changed',
    'sender',
    'A constraint is wider than the contract or the policy allows.',
  ),
  fact_missing: rejection('changed', 'sender', 'A fact that the contract requires is missing.'),
  fact_unverified: rejection(
    'changed',
    'sender',
    'A fact must be verified, from a source the contract names.',
  ),
  fact_invalid: rejection('changed', 'sender', 'The value of a fact does not fit the contract.'),
  records_disagree: rejection('changed', 'sender', "The receiver's own records disagree with the envelope."),
  contract_refused: rejection('changed', 'sender', "The contract's acceptance check refused the case."),

  // Writes the ledger refuses.
  case_exists: refusal('never', 'developer', 'The case is already open in this ledger.'),
  case_busy: refusal(
    'changed',
    'sender',
    'The case cannot close: an offer, a work item or an effect is open.',
  ),
  offer_open: refusal('changed', 'sender', 'The case already has an open offer.'),
  offer_unknown: refusal('never', 'sender', 'There is no such offer.'),
  offer_decided: refusal('never', 'sender', 'The offer is already decided.'),
  withdraw_needed: refusal(
    'changed',
    'sender',
    'The receiver has its own ledger: the offer closes only by its answer to a withdrawal.',
  ),
  plan_ended: refusal(
    'never',
    'sender',
    'The list of candidates is not at this attempt any more, or has ended.',
  ),
  question_unknown: refusal('changed', 'sender', 'The receiver has no such question open.'),
  effects_frozen: refusal(
    'same',
    'sender',
    'An offer of the case is open and its receiver has its own ledger: no effect starts, and no fenced row is written, until the offer closes.',
  ),
  peers_unanswered: refusal(
    'same',
    'operator',
    'Since this agent was started, not every peer that the case can have gone to or come from has said what it holds of it.',
  ),
  effect_in_flight: refusal('same', 'sender', 'An effect on the case is started and not yet settled.'),
  effect_duplicate: refusal('never', 'developer', 'An effect with this key exists on the case.'),
  effect_unknown: refusal('never', 'developer', 'There is no such effect on the case.'),
  effect_settled: refusal('never', 'developer', 'The effect is already settled in another way.'),
  cap_exceeded: refusal('never', 'operator', 'The amount would pass the cap of the case.'),
  operation_prohibited: refusal('never', 'operator', 'The operation is prohibited for this case.'),
  operation_not_permitted: refusal(
    'never',
    'operator',
    'The operation is not among those this agent may do here.',
  ),
  work_unknown: refusal('never', 'developer', 'There is no such work item.'),
  work_settled: refusal('never', 'developer', 'The work item is already settled.'),
  output_invalid: refusal(
    'changed',
    'developer',
    'The result is not the output that the contract requires; the work item stays open.',
  ),
  kind_conflict: refusal('changed', 'operator', 'The ledger holds another definition of this kind.'),
  task_conflict: refusal('same', 'developer', 'The task was changed by another writer, or is final.'),
  push_limit: refusal(
    'changed',
    'sender',
    'The task has as many push notification configurations as it may have.',
  ),
  audit_broken: refusal('never', 'operator', 'The audit chain of the case does not verify.'),

  // Nothing was decided.
  unauthenticated: error('changed', 'sender', 'No valid credentials were presented.'),
  not_found: error('never', 'sender', 'There is no such thing, or it is not yours.'),
  body_too_large: error('changed', 'sender', 'The request body is larger than the limit.'),
  json_invalid: error('changed', 'sender', 'The body is not strict JSON.'),
  json_too_complex: error('changed', 'sender', 'The body is too deep or has too many nodes.'),
  message_invalid: error('changed', 'sender', 'The A2A message does not have the required form.'),
  control_invalid: error('changed', 'sender', 'The control message does not have the required form.'),
  answer_invalid: error(
    'changed',
    'sender',
    'The answer to a question does not have the required form, or holds what the contract does not let cross.',
  ),
  verb_unknown: error('never', 'sender', 'The verb of the control message is not one this node knows.'),
  rate_limited: error('same', 'sender', 'Too many requests from this peer.'),
  busy: error('same', 'receiver', 'The node or its ledger is busy.'),
  internal: error('same', 'receiver', 'The node failed internally; nothing was decided.'),
  ledger_unavailable: error('same', 'operator', 'The ledger cannot be read or written.'),
  peer_unreachable: error('same', 'operator', 'The peer did not answer.'),
  peer_error: error('same', 'receiver', 'The peer answered with an error that decides nothing.'),
  case_quarantined: error(
    'never',
    'operator',
    'The case is quarantined, since the ledger contradicts what was witnessed or proved of it; a person has to act.',
  ),
  reader_missing: error(
    'same',
    'operator',
    'This agent has no case reader for the kind, which a thin contract needs.',
  ),
  reader_failed: error('same', 'operator', 'The case reader failed, or gave facts in another form.'),
  incarnation_superseded: error(
    'same',
    'sender',
    'A later incarnation of the sender is known here, under which it has not said that it still holds this.',
  ),
  outcome_unknown: error('same', 'sender', 'It is not known whether the other side acted.'),
  receipt_invalid: error('never', 'receiver', 'The acceptance does not verify.'),

  // Found before anything left this process.
  usage: local('changed', 'developer', 'The command or call was used wrongly.'),
  config_invalid: local('changed', 'operator', 'The configuration is not valid.'),
  contract_missing: local('changed', 'operator', 'No such contract is configured.'),
  contract_invalid: local('changed', 'developer', 'The contract definition is not valid.'),
  case_file_invalid: local('changed', 'sender', 'The case file is not valid.'),
  evidence_file_missing: local('changed', 'sender', 'The evidence file or artifact is not there.'),
  evidence_expires_early: local('changed', 'sender', 'A signed URL would expire before accept_by.'),
  personal_data: local(
    'changed',
    'sender',
    'Free text holds personal data that the contract does not allow.',
  ),
  peer_unknown: local('changed', 'operator', 'The peer is not configured.'),
  peer_key_mismatch: local('changed', 'operator', "The peer's key is not the one configured."),
  peer_incompatible: local('changed', 'operator', 'The peer does not offer what this handover needs.'),
  url_forbidden: local('changed', 'operator', 'The URL points where this node does not connect.'),
  ledger_changed: local('changed', 'operator', 'The ledger is not the one that this agent has worked with.'),
  schema_newer: local('changed', 'operator', 'The database was made by a newer version.'),
  ledger_unsafe: local(
    'changed',
    'operator',
    'The database may lose what it commits, and the configuration demands that it does not.',
  ),
  backup_invalid: local('changed', 'operator', 'The backup is not whole, or is no backup of a ledger.'),
  port_taken: local('changed', 'operator', 'The port is in use.'),
  already_exists: local('changed', 'operator', 'It exists already.'),
} as const satisfies Record<string, CodeInfo>;

/** A stable code of the table. */
export type ErrorCode = keyof typeof ERROR_TABLE;

/** One thing wrong with one field. `path` is a JSON pointer-like dotted path; never a value. */
export interface FieldError {
  readonly path: string;
  readonly problem: string;
}

/** Field errors named in one answer to a peer; more are only counted. */
export const MAX_FIELD_ERRORS = 3;

/** What an error carries besides its code and sentence. */
export interface ErrorDetails {
  readonly fields?: readonly FieldError[];
  /** Machine-readable particulars, such as `{ presented: 3, current: 4 }`. Never secrets. */
  readonly data?: Readonly<Record<string, string | number | boolean | null>>;
  readonly cause?: unknown;
}

/** Every error that Holdfast raises: a stable code, a sentence for people, and fields for programs. */
export class HoldfastError extends Error {
  override readonly name = 'HoldfastError';
  readonly code: ErrorCode;
  readonly fields: readonly FieldError[];
  readonly data: Readonly<Record<string, string | number | boolean | null>>;

  constructor(code: ErrorCode, message?: string, details: ErrorDetails = {}) {
    super(
      message ?? ERROR_TABLE[code].meaning,
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.code = code;
    this.fields = details.fields ?? [];
    this.data = details.data ?? {};
  }

  get retry(): Retry {
    return ERROR_TABLE[this.code].retry;
  }
}

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_TABLE, code);
}

/** Whether an error has a code of the table. */
export function isHoldfastError(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError;
}
