import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { FieldError } from '../core/index.js';

/** One fact that may cross, and what makes it good enough. A fact whose key the contract does not name does not leave. */
export interface FactRule {
  readonly schema: StandardSchemaV1;
  readonly required: boolean;
  /** The fact must carry `verified: true`. */
  readonly verified?: boolean;
  /** Sources that may vouch for it; any where absent. */
  readonly sources?: readonly string[];
  /** Whether the value may be written to audit and logs. */
  readonly loggable?: boolean;
  /** The value may hold personal data, because the purpose needs it: it is not scanned, not summarised and never loggable. */
  readonly personal?: boolean;
  /** Why this crosses as a value and not as a reference, or the other way round; recorded for review. */
  readonly why: string;
}

/** What the acceptance check sees. `facts` are validated outputs for convenience; `envelope` is what was received, and what counts. */
export interface OfferView {
  readonly caseId: string;
  readonly root: string;
  readonly fromAgent: string;
  readonly epoch: number;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly envelope: Readonly<Record<string, unknown>>;
  readonly evidence: readonly VerifiedEvidence[];
  /** What its sender was asked about this offer, and answered; the facts are as in the envelope, valid against the contract. */
  readonly clarifications: readonly {
    readonly question: string;
    readonly answer: { readonly facts: Readonly<Record<string, unknown>>; readonly text: string | null };
  }[];
}

/** Evidence whose bytes were fetched, hashed and kept; `read` gives those very bytes. */
export interface VerifiedEvidence {
  readonly artifactId: string;
  readonly version: number;
  readonly sha256: string;
  readonly bytes: number;
  readonly mediaType: string;
  readonly filename: string;
  /** The bytes that were verified. */
  read(): Promise<Uint8Array>;
}

export type Verdict =
  | { readonly verdict: 'accept' }
  | {
      readonly verdict: 'clarify';
      /** For the sender, at most 2,000 characters; the check runs again with its answer. */
      readonly question: string;
    }
  /** Somebody has to decide, and has until `accept_by`. */
  | { readonly verdict: 'later' }
  | {
      readonly verdict: 'reject';
      /** A rejection code of the error table, or one that the contract declares. */
      readonly code: string;
      readonly reason: string;
      readonly fields?: readonly FieldError[];
      /** What the sender could do instead, such as another agent to ask. */
      readonly hint?: string;
    };

export type AcceptanceCheck = (offer: OfferView) => Verdict | Promise<Verdict>;

/** The agreement about one sort of handover: what both sides and the tests need, and nothing else. */
export interface ContractDefinition {
  readonly name: string;
  readonly version: number;
  /** The receiving skill, and how the card describes it. */
  readonly skill: {
    readonly id: string;
    readonly name: string;
    readonly description: string;
    readonly tags: readonly string[];
  };
  /** For what the receiver gets what the allow list names. */
  readonly purpose: string;
  /**
   * Its envelope names the case and carries nothing of it: the facts are what each side's own case reader finds in the system of record
   * that both use, the constraints the policy of the kind. For kinds of mode `shared`.
   */
  readonly thin?: boolean;
  readonly facts: Readonly<Record<string, FactRule>>;
  /** Fields of the case file besides the facts that may leave. */
  readonly allow: readonly (
    | 'goal'
    | 'done'
    | 'remaining'
    | 'open_questions'
    | 'constraints'
    | 'artifact'
    | 'source_task_id'
  )[];
  readonly constraints: {
    readonly deadline: boolean;
    /** Operations that must carry a cap. */
    readonly caps: readonly string[];
    /** Prohibitions that must be stated. */
    readonly prohibitions: readonly string[];
  };
  /** What the receiver may do under this contract; the node's policy narrows it further. */
  readonly operations: readonly string[];
  readonly evidence: {
    readonly min: number;
    readonly max: number;
    readonly mediaTypes: readonly string[];
    readonly maxBytes: number;
  };
  /** `name/version` of what the receiver is to produce, and its form. */
  readonly requiredOutput?: string;
  /** What the result of work that is done must fit; it is then required. */
  readonly output?: StandardSchemaV1;
  /** Rejection codes of the contract's own, with their meaning. */
  readonly codes?: Readonly<Record<string, string>>;
  /** Most questions that the sender is asked about one offer; 3 where absent. */
  readonly questions?: number;
  /** Deterministic check on what was received; a node's handler adds the check against its own records. */
  readonly accept?: AcceptanceCheck;
}

/** A checked definition; `id` is `name/version`. */
export interface Contract extends ContractDefinition {
  readonly id: string;
}
