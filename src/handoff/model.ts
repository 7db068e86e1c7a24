import type { AcceptanceCheck, Contract, OfferView, VerifiedEvidence } from '../contract/index.js';
import type { AcceptanceKey, CaseRef, ErrorCode, FieldError, Money } from '../core/index.js';
import type { CaseFile, Fact, HandoffEnvelope } from '../envelope/index.js';
import type { EffectRow, NoteRow, OfferRow, SentTask, WorkItem } from '../ledger/index.js';

/** One handover as its sender asks for it. */
export interface HandOffInput {
  readonly ref: CaseRef;
  /**
   * The case's source record, as read by `parseCaseFile` or as the plain object of its JSON; redaction decides what of it leaves. None
   * under a thin contract.
   */
  readonly caseFile?: CaseFile | Readonly<Record<string, unknown>>;
  /**
   * URL of the agent that is to own the case; several are asked one after another, each once the offer before is closed by proof. At most 20.
   */
  readonly to: string | readonly string[];
  /** Id of the person of this node who gets the case where none of them takes it; where absent, it waits for a person. */
  readonly escalateTo?: string;
  /**
   * `blocking`: the call waits for the decision, as long as the receiver holds it. `queued`: the receiver may take its time, up to
   * `accept_by`; the call returns as soon as the receiver has the offer, and a running node of this agent goes on from there. Default: as
   * `kinds.<name>.waiting` says, which is `blocking` where absent.
   */
  readonly waiting?: 'blocking' | 'queued';
  /** `name/version` */
  readonly contract: string;
  /** The id of the person who owns the case and hands it over through this agent; absent where the agent itself owns it. */
  readonly person?: string;
  /** Artifacts in this node's evidence store, none where absent; the latest version where none is named. None under a thin contract. */
  readonly evidence?: readonly { readonly artifactId: string; readonly version?: number }[];
  /** Until when the receiver may accept, milliseconds from now; default: the kind's limit. */
  readonly acceptWithinMs?: number;
  /** W3C traceparent to continue; a new trace where absent. */
  readonly traceparent?: string;
}

/**
 * `open`: not decided as far as we know. The sender is still the owner; `resend` delivers the identical bytes, a restart does so too. If
 * `offer.state` is `in_doubt`, it was to be withdrawn and its receiver did not answer; it is asked on until it does.
 */
export type HandOffResult =
  | {
      readonly state: 'accepted';
      readonly offer: OfferRow;
      readonly owner: string;
      readonly epoch: number;
      /** Null where the receiver has a ledger of its own, and this one holds only the receipt. */
      readonly workItem: string | null;
    }
  | {
      readonly state: 'rejected';
      readonly offer: OfferRow;
      readonly code: string;
      readonly reason: string;
      readonly fields: readonly FieldError[];
      readonly retryable: boolean;
      readonly hint: string | null;
    }
  | { readonly state: 'withdrawn' | 'expired'; readonly offer: OfferRow }
  | {
      readonly state: 'open';
      readonly offer: OfferRow;
      /** Why no answer was had; `null` where the receiver says that it has the offer, and has not decided. */
      readonly problem: ErrorCode | null;
      readonly reason: string;
      /** The receiver's task, with what it asks. */
      readonly task?: SentTask;
    };

/** What a person of this node does with a case, at the epoch at which they looked at it. */
export interface CaseByPerson {
  readonly ref: CaseRef;
  readonly epoch: number;
  /** The id of the person, such as `ann.meyer`; as owner they are `person:<id>@<URL of this agent>`. */
  readonly person: string;
  /** Why, one line of at most 500 characters without personal data; it stands in the audit. */
  readonly reason: string;
}

/** A person takes a case. */
export interface TakeCaseInput extends CaseByPerson {
  /**
   * Even though its open offer is in doubt, which only a kind of mode `separate` knows: its receiver may own the case, too. The case goes on
   * at epoch + 2.
   */
  readonly force?: boolean;
}

/** The person who owns a case passes it to another. */
export interface ReassignInput extends CaseByPerson {
  /** The id of the person who is to own it. */
  readonly to: string;
}

/** A case that its receivers rejected, or do not decide, goes to a person of this node. */
export interface EscalateInput {
  /** The offer that leads nowhere; the case is still at its epoch. */
  readonly key: AcceptanceKey;
  readonly person: string;
  /** Why, as in {@link CaseByPerson}. */
  readonly reason: string;
}

/** What a person settles of what waits for one, and what they say of it; all of it stands in the audit. */
export interface ResolutionInput extends Omit<CaseByPerson, 'epoch'> {
  /** How long it took. */
  readonly minutes?: number;
  /** What was looked up or touched: the name of a system, and an id in it; at most 20. */
  readonly records?: readonly { readonly name: string; readonly id: string }[];
}

/** A person lets a quarantined case go on from what the ledger holds of it, and owns it then. */
export interface RecoverCaseInput extends ResolutionInput {
  /** The highest epoch that anybody has seen of it; needed where the quarantine names none, and where it was higher than that. */
  readonly seenEpoch?: number;
  /** What it was, where the ledger has lost the case itself. */
  readonly kind?: string;
  /** In a `separate` kind: the URL of the agent that owns it, or `person:ID@URL`, as was found in the other ledgers. */
  readonly owner?: string;
}

/** A person takes it upon themselves that a peer will never say what it holds. */
export interface WaivePeerInput extends Pick<CaseByPerson, 'person' | 'reason'> {
  readonly peer: string;
}

/** A person has found out what became of an `unknown` effect. */
export interface ResolveEffectInput extends ResolutionInput {
  readonly key: string;
  /** `failed`: proved not to have happened, so that the key may start again. */
  readonly state: 'done' | 'failed';
  /** The target's record of it, such as a refund id. */
  readonly outcome?: string;
}

/** The answer to what a receiver asks before it decides. */
export interface AnswerInput {
  /** The offer that it asks about. */
  readonly key: AcceptanceKey;
  /** As in a case file; the contract must name each. None where absent. */
  readonly facts?: readonly Fact[];
  /** In words, at most 2,000 characters, without personal data. */
  readonly text?: string;
}

/** A person of this node accepts an offer that is stored undecided here. */
export interface AcceptPendingInput {
  readonly key: AcceptanceKey;
  /** The id of the person, as in {@link CaseByPerson}. */
  readonly person: string;
}

/** The same, rejected. */
export interface RejectPendingInput extends AcceptPendingInput {
  /** A rejection code of the error table, or one that the contract declares. */
  readonly code: string;
  /** For the sender, without personal data. */
  readonly reason: string;
  /** What the sender could do instead, such as another agent to ask. */
  readonly hint?: string;
}

/** A person has found out that the receiver of an offer, from which a case was taken by force, does not own it and never will. */
export interface SettleDoubtInput extends ResolutionInput {
  /** The offer that is in doubt. */
  readonly key: AcceptanceKey;
}

/** What a receiver is asked about: one attempt, or all attempts of this agent on a case. */
export type QueryInput = {
  /** URL of the receiver. */
  readonly to: string;
  /** URL of the node that opened the case. */
  readonly root: string;
} & ({ readonly handoffId: string; readonly attempt: number } | { readonly caseId: string });

/** One decision as the receiver has stored it. An acceptance is here only if its receipt was verified. */
export type PeerDecision = {
  readonly handoffId: string;
  readonly attempt: number;
  readonly decidedAt: string;
} & (
  | {
      readonly verdict: 'accepted';
      readonly epoch: number;
      readonly workItem: string;
      readonly receipt: string;
    }
  | {
      readonly verdict: 'rejected' | 'withdrawn';
      readonly code: string;
      readonly reason: string;
      readonly fields: readonly FieldError[];
      readonly retryable: boolean;
      readonly hint: string | null;
    }
);

/** `none`: no decision is stored now, which settles nothing. `deciding`: the offer is being judged at this moment. */
export interface QueryResult {
  readonly state: 'decided' | 'deciding' | 'none';
  /** Newest first. */
  readonly decisions: readonly PeerDecision[];
  /** Whether there are older ones than these. */
  readonly more: boolean;
}

/** All that a former owner can tell a customer. */
export interface StatusPointer {
  readonly case_id: string;
  readonly root: string;
  readonly status: 'owned_here' | 'handed_off' | 'closed';
  readonly owner: string;
}

/** One side effect on a business system, to be run under the fence. */
export interface EffectInput<T> {
  readonly ref: CaseRef;
  readonly epoch: number;
  /** Names one logical effect of the case, such as `refund-pay_B`; the target gets it as its idempotency key. */
  readonly key: string;
  readonly operation: string;
  readonly amount?: Money;
  /** Makes the outside call. Throw {@link EffectNotDone} only when it is proved not to have happened. */
  readonly perform: (idempotencyKey: string) => Promise<T>;
  /** The target's record of it, kept in the ledger, such as a refund id. */
  readonly outcome?: (result: T) => string;
  /**
   * Asks the target what became of an earlier call with this key, after a crash or a lost answer. `not_done` is proof that it never
   * happened and never will; it is believed only once the effect's time limit has passed, since the first call may still be on its way.
   */
  readonly reconcile?: (
    idempotencyKey: string,
  ) => Promise<{ readonly outcome: string | null } | 'not_done' | 'unknown'>;
}

/** `result` is null where the effect had been done before: then `row.outcome` is what is known of it. */
export interface EffectResult<T> {
  readonly row: EffectRow;
  readonly result: T | null;
}

/** What an accepted handoff gives the receiver to work with; every write carries the epoch of the acceptance. */
export interface AcceptedWork {
  readonly item: WorkItem;
  readonly ref: CaseRef;
  readonly epoch: number;
  readonly envelope: HandoffEnvelope;
  readonly evidence: readonly VerifiedEvidence[];
  /** What the sender was asked before the acceptance, and answered. */
  clarifications(): Promise<OfferView['clarifications']>;
  /** Writes a note to the case. @throws epoch_stale, not_owner */
  note(text: string): Promise<NoteRow>;
  /** Runs one side effect. @throws epoch_stale, cap_exceeded, operation_not_permitted, effect_duplicate, outcome_unknown */
  effect<T>(input: Omit<EffectInput<T>, 'ref' | 'epoch'>): Promise<EffectResult<T>>;
  /** Settles the work item as done, with the output that the contract requires. @throws output_invalid, epoch_stale, work_settled */
  done(result?: unknown): Promise<WorkItem>;
  /** Settles the work item as failed; the case stays with this agent. @throws epoch_stale, work_settled */
  fail(result?: unknown): Promise<WorkItem>;
}

/**
 * A node's side of a contract. `check` sees the offer before acceptance and may compare it with the node's own records;
 * `work` runs after the acceptance has committed, and again after a crash until the work item is settled.
 */
export interface HandoffHandler {
  readonly check?: AcceptanceCheck;
  /** Does what was handed over. */
  readonly work?: (work: AcceptedWork) => Promise<void>;
}

/** A contract that this node accepts handoffs under, with the node's own side of it. */
export interface ReceivedContract {
  readonly contract: Contract;
  readonly handler: HandoffHandler;
}
