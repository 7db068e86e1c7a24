import type { AcceptanceKey, CaseRef, Money, Withheld } from '../core/index.js';
import type { Principal } from '../trust/index.js';
import type { PlanStep } from './candidates.js';
import type {
  Constraints,
  DecisionRow,
  EffectRow,
  Quarantine,
  Transfer,
  WorkItem,
  WorkState,
} from './model.js';

export interface OpenCaseCommand {
  readonly ref: CaseRef;
  readonly kind: string;
  readonly owner: string;
  /** 1, or the epoch at which another system of record hands the case in; above 1 it is audited as an import. */
  readonly epoch: number;
  readonly importedFrom?: string;
  readonly actor: string;
}

/** A write by the owner at its epoch: every write carries both. */
export interface OwnerWrite {
  readonly ref: CaseRef;
  readonly writer: string;
  readonly epoch: number;
}

export interface IntendOfferCommand extends OwnerWrite {
  readonly attempt: number;
  readonly toAgent: string;
  readonly contract: string;
  readonly skill: string;
  readonly digest: string;
  readonly message: string;
  readonly acceptBy: string;
  /** The effects of the case as they were read for the envelope; where absent, it is not known what the envelope says of them. */
  readonly effects?: readonly Pick<EffectRow, 'key' | 'state' | 'startedSeq'>[];
  readonly withheld: readonly Withheld[];
  /** What the contract declares loggable, for the audit. */
  readonly loggable: Readonly<Record<string, unknown>>;
  /** The offer is the next of an ordered list of candidates. */
  readonly plan?: PlanStep;
  /** The process that is to send it has claimed it from the start, if it has a lease. */
  readonly holder?: string;
  /** Where a person owns the case; `writer` is that person then, and the sender their agent. */
  readonly approval?: Approval;
}

/** The task that carries a decision; written in the decision's transaction. */
export interface DecisionTask {
  readonly id: string;
  readonly contextId: string;
  readonly state: string;
  readonly statusAt: string;
  readonly task: string;
}

/** An effect of the case as the envelope lists it. */
export type InheritedEffect = Pick<EffectRow, 'key' | 'operation' | 'amount' | 'state'>;

/** What an acceptance in a `separate` kind brings into the receiver's ledger besides the decision. */
export interface SeparateAcceptance {
  /**
   * The changes of owner that the envelope's receipts prove, oldest first. Those at epochs this ledger has passed are skipped; the others
   * apply one after another while each begins with the owner and epoch that the ledger holds by then.
   */
  readonly provenance: readonly Transfer[];
  /** Every effect that the envelope lists. What is `started` there counts as `unknown`. */
  readonly effects: readonly InheritedEffect[];
  /** Under which the sender made the offer. */
  readonly incarnation: string;
  /** The receipt that `answer` carries (compact JWS), and the public key (JWK as JSON) that verifies it. */
  readonly receipt: string;
  readonly receiptKey: string;
}

export interface AcceptCommand {
  readonly key: AcceptanceKey;
  readonly ref: CaseRef;
  readonly kind: string;
  readonly toAgent: string;
  readonly epoch: number;
  readonly digest: string;
  readonly contract: string;
  readonly acceptBy: string;
  readonly constraints: Constraints;
  readonly hops: readonly string[];
  readonly tasksLeft: number;
  readonly envelope: string;
  /** Id of the work item, minted by the receiver because the answer names it. */
  readonly workId: string;
  readonly answer: string;
  readonly task: DecisionTask;
  readonly principal: Principal;
  readonly loggable: Readonly<Record<string, unknown>>;
  /** The person who decided, where no check did: `person:<id>@<node URL>`. */
  readonly decidedBy?: string;
  /** Required in a `separate` kind; without meaning in a `shared` one. */
  readonly separate?: SeparateAcceptance;
  /** Of the person who owned the case; the sender is their agent then. */
  readonly approval?: Approval;
}

/** Of which ledger an offer is, and whose it is to decide. */
export interface OfferOrigin {
  readonly kind: string;
  readonly toAgent: string;
  /** Under which it was made; `null` where it is to be decided whatever its sender has lost. */
  readonly incarnation: string | null;
}

export interface RejectCommand {
  readonly key: AcceptanceKey;
  readonly ref: CaseRef;
  readonly digest: string;
  readonly code: string;
  readonly answer: string;
  readonly task: DecisionTask;
  readonly principal: Principal;
  /** As in an acceptance. */
  readonly decidedBy?: string;
  /** Where it is known. In a `separate` kind nothing is decided before the sender was heard. */
  readonly from?: OfferOrigin;
  readonly data: Readonly<Record<string, string | number | boolean | null>>;
}

/**
 * What became of an attempt to decide. `decided`: a decision stood already (same digest, or a tombstone) and is the answer.
 * `conflict`: the key is in use with another digest, in a decision or in the ledger's own offer; nothing changed but the audit.
 */
export type DecideResult =
  | { readonly outcome: 'stored'; readonly decision: DecisionRow }
  | { readonly outcome: 'decided'; readonly decision: DecisionRow }
  | { readonly outcome: 'conflict' };

/** `refused`: ownership or the offer does not allow it. Nothing was stored: the caller stores the rejection, then answers. */
export type AcceptResult =
  | { readonly outcome: 'accepted'; readonly decision: DecisionRow; readonly work: WorkItem }
  | Exclude<DecideResult, { outcome: 'stored' }>
  | {
      readonly outcome: 'refused';
      readonly code:
        | 'case_unknown'
        | 'case_closed'
        | 'not_owner'
        | 'epoch_stale'
        | 'epoch_ahead'
        | 'offer_expired'
        | 'offer_closed'
        | 'case_changed'
        | 'kind_unknown';
      readonly data: Readonly<Record<string, string | number>>;
    };

export interface VoidOfferCommand {
  readonly key: AcceptanceKey;
  readonly writer: string;
  readonly reason: string;
  /** The offer closes as `expired` instead of `withdrawn`; only past its `accept_by`. */
  readonly expired: boolean;
  /** The rejection part (code `withdrawn`) that a late arrival is answered with. */
  readonly answer: string;
}

/** `separate` only: the receiver's final answer, other than an acceptance, as its ledger stores it. */
export interface CloseOfferCommand {
  readonly key: AcceptanceKey;
  readonly verdict: 'rejected' | 'tombstone';
  /** Of the rejection; that of a tombstone is `withdrawn`. */
  readonly code: string;
  /** The bytes that were rejected; `null` for a tombstone. */
  readonly digest: string | null;
  /** The rejection part as it came. */
  readonly answer: string;
  /** With a tombstone, the offer closes as `expired` instead of `withdrawn`; only past its `accept_by`. */
  readonly expired: boolean;
}

/** The receiver's side of a withdrawal, where no offer of a `shared` kind stands in its ledger: that one is voided. */
export interface WithdrawCommand {
  readonly key: AcceptanceKey;
  /** The case as the sender names it; nothing need be known of it here. */
  readonly ref: CaseRef;
  /** The rejection part (code `withdrawn`) that the withdrawal and any late arrival are answered with. */
  readonly answer: string;
  readonly principal: Principal;
  /** Whose it is to decide; of a case that no ledger but this can have moved, only named. */
  readonly toAgent: string;
  /** `separate` only: the sender's node says that one of its own has owned the case since, which was taken over though this was in doubt. */
  readonly takeover?: Transfer;
}

export interface StartEffectCommand extends OwnerWrite {
  readonly key: string;
  readonly operation: string;
  readonly amount: Money | null;
}

export interface SettleEffectCommand extends OwnerWrite {
  readonly key: string;
  /** Settles this start of the key and no later one; whichever stands where absent. */
  readonly startedSeq?: number;
  readonly state: 'done' | 'failed' | 'unknown';
  readonly outcome: string | null;
  /** A person settles one that is `unknown`, and says why. */
  readonly resolution?: Resolution;
}

export interface SettleWorkCommand extends OwnerWrite {
  readonly workId: string;
  readonly state: Extract<WorkState, 'done' | 'failed'>;
  readonly result: string | null;
}

export interface AddNoteCommand extends OwnerWrite {
  readonly text: string;
}

/**
 * How a case changes hands without a receiver: a person takes it, an agent gives one of its cases to a person, a person passes it to
 * another, or gives it back to the agent of their node.
 */
export type OwnerChange = 'takeover' | 'escalation' | 'reassignment' | 'return';

export interface ChangeOwnerCommand {
  readonly ref: CaseRef;
  readonly change: OwnerChange;
  /** The epoch at which the case was looked at. */
  readonly epoch: number;
  /** Who does it: a person, or in an escalation the agent. */
  readonly actor: string;
  readonly to: string;
  /** Why, in a sentence; it stands in the audit. */
  readonly reason: string;
  /** The open offer that is voided with it, and the rejection part (code `withdrawn`) that its late arrival is answered with. */
  readonly voids: { readonly key: AcceptanceKey; readonly answer: string } | null;
  /** Required in a `separate` kind, where nothing is voided; without meaning in a `shared` one. */
  readonly proof?: ChangeProof;
  /** A takeover though the case's open offer is in doubt: the epoch that its receiver may have begun is left out. */
  readonly force?: boolean;
}

/** The word of the node of both owners for a change between them, as other ledgers will be shown it. */
export interface ChangeProof {
  /** The owner before. */
  readonly from: string;
  /** SHA-256 (hex) of what was approved. */
  readonly digest: string;
  /** The receipt (compact JWS), and the public key (JWK as JSON) that verifies it. */
  readonly receipt: string;
  readonly receiptKey: string;
}

/** A person ends the doubt that is left of a forced takeover: they have found out that the receiver does not own the case, and never will. */
export interface SettleDoubtCommand {
  readonly key: AcceptanceKey;
  readonly resolution: Resolution;
  /** The rejection part (code `withdrawn`) that stands for the offer's decision. */
  readonly answer: string;
}

/** The person who owns a case lets their agent offer it: who they are, and the digest of what they approved. */
export interface Approval {
  readonly person: string;
  /** SHA-256 (hex) of the signed approval. */
  readonly digest: string;
}

/** A person lets a quarantined case go on from what the ledger holds of it. */
export interface RecoverCaseCommand {
  readonly ref: CaseRef;
  /** By the person who owns the case then. */
  readonly resolution: Resolution;
  /** The epoch at which the case was looked at; `null` where it is missing. */
  readonly epoch: number | null;
  /** The highest epoch that anybody has seen; the case goes on at the next. */
  readonly above: number;
  /** What it was, where the case is missing. */
  readonly kind?: string;
  /** In a `separate` kind, who owns it by what the person found in the other ledgers: it is theirs then, at `above`. */
  readonly owner?: string;
  /** What was witnessed, for the audit. */
  readonly quarantine: Pick<Quarantine, 'reason' | 'witnessed'>;
  readonly voids: ChangeOwnerCommand['voids'];
}

/** What a person says of an item of the attention queue that they settled; it stands in the audit. */
export interface Resolution {
  /** `person:<id>@<node URL>` */
  readonly by: string;
  readonly reason: string;
  /** How long it took. */
  readonly minutes?: number;
  /** What was touched or looked up: the name of a system, and an id in it. */
  readonly records?: readonly { readonly name: string; readonly id: string }[];
}

/** One artifact version that an offer carries and its sender has revoked. */
export interface RecordRevocationCommand {
  readonly key: AcceptanceKey;
  readonly artifactId: string;
  readonly version: number;
  readonly sha256: string;
  readonly reason: string;
  /** The rejection part as JSON, which answers the offer where this ledger closes it. */
  readonly answer: string;
}

export interface RecordReceiptCommand {
  readonly key: AcceptanceKey;
  readonly receipt: string;
  readonly receiptKey: string;
}
/** A process takes what it works on, so that no other does the same at the same time; it keeps it as long as it lives. */
export interface Claim {
  readonly tenant: string;
  readonly agent: string;
  readonly holder: string;
  readonly limit: number;
}

/** What one claim is of: an offer, or a work item. */
export type Claimed = { readonly key: AcceptanceKey } | { readonly tenant: string; readonly workId: string };
