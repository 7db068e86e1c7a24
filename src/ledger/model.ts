import type { AcceptanceKey, CaseRef, Money, Withheld } from '../core/index.js';
import type { CandidatePlan } from './candidates.js';

/**
 * One change of owner of a case of a `separate` kind, proved by the receipt that the new owner's node signed. A ledger takes it as true:
 * whoever hands it in has verified the receipt with a key of that node, and read every other field out of it.
 *
 * Between two agents it is an acceptance. Where both owners are of one node, an agent and its persons, it is that node's own word; to
 * everybody else they are one party, so that such a one may begin above the epoch that a ledger knows.
 */
export interface Transfer {
  /** The attempt that was accepted, of which `key.sender` is the agent that owned the case; inside one node, the owner before. */
  readonly key: AcceptanceKey;
  readonly ref: CaseRef;
  /** The owner after. */
  readonly toAgent: string;
  readonly oldEpoch: number;
  readonly newEpoch: number;
  /** SHA-256 (hex) of the canonical envelope; inside one node, of what was approved. */
  readonly digest: string;
  /** The receipt (compact JWS). */
  readonly receipt: string;
  /** The public key (JWK as JSON) that verified it. */
  readonly receiptKey: string;
}

/** What bounds the owner of a case: the node's policy, narrowed by the contract and by what was agreed. */
export interface Constraints {
  /** Operation -> most that all its effects on the case may add up to. */
  readonly caps: Readonly<Record<string, Money>>;
  /** Operations nobody may start on the case. */
  readonly prohibitions: readonly string[];
  /** Operations the owner may start; `null` where no contract says (the opener of a case). */
  readonly operations: readonly string[] | null;
}

/** The sort of case: its system of record, who may do what, and limits. Held by the ledger, not by a message. */
export interface KindDefinition {
  readonly kind: string;
  /** Where the business facts live. The system of record of *ownership* is this ledger. */
  readonly systemOfRecord: string;
  /**
   * `shared`: both agents use this ledger, whose acceptance moves the owner. `separate`: each organisation has its own; the acceptance
   * moves the owner in the receiver's, and the sender's follows when it holds the receipt. Never changes once stored.
   */
  readonly mode: 'shared' | 'separate';
  /** Contracts, `name/version`, under which cases of this kind may be handed over. */
  readonly contracts: readonly string[];
  readonly policy: {
    readonly caps: Readonly<Record<string, Money>>;
    readonly prohibitions: readonly string[];
    /**
     * Agent URL -> operations it may start. `*` stands for any agent that owns the case by an acceptance whose
     * contract names the operation; an agent listed by URL needs no contract, but a contract still narrows it.
     */
    readonly operations: Readonly<Record<string, readonly string[]>>;
  };
  readonly limits: {
    /** Agents a case may have passed through when it is offered. */
    readonly maxHops: number;
    /** Handovers a case may see in all. */
    readonly maxTasks: number;
    /** From offer to `accept_by`, milliseconds. */
    readonly acceptWithinMs: number;
    /** How long a `started` effect may stay unsettled before it counts as `unknown`, milliseconds. */
    readonly effectLimitMs: number;
  };
}

/** A case as the ledger holds it: one owner at one epoch. */
export interface CaseRow {
  readonly ref: CaseRef;
  readonly kind: string;
  readonly status: 'open' | 'closed';
  readonly owner: string;
  readonly epoch: number;
  readonly openedBy: string;
  readonly openedAt: string;
  readonly closedAt: string | null;
  /** The contract under which an agent accepted last; `null` where none has. It stays where a person takes the case over. */
  readonly contract: string | null;
  readonly constraints: Constraints;
  /** Agents the case has passed through, oldest first, without the present owner. */
  readonly hops: readonly string[];
  readonly tasksLeft: number;
}

/**
 * intended -> offered -> accepted | rejected | withdrawn | expired, or in_doubt until one of those is proved.
 * `intended` was never sent; from `offered` on the bytes may have reached the receiver. One open offer per case.
 */
export type OfferState =
  | 'intended'
  | 'offered'
  | 'accepted'
  | 'rejected'
  | 'withdrawn'
  | 'expired'
  | 'in_doubt';

/** One attempt to hand one case to one agent, as its sender's ledger holds it. */
export interface OfferRow {
  readonly key: AcceptanceKey;
  readonly ref: CaseRef;
  readonly kind: string;
  readonly toAgent: string;
  readonly contract: string;
  readonly skill: string;
  /** The epoch being handed over. */
  readonly epoch: number;
  /** SHA-256 (hex) of the canonical envelope. */
  readonly digest: string;
  /** The A2A message exactly as it is sent, every time. */
  readonly message: string;
  readonly state: OfferState;
  /** Why it was rejected. */
  readonly code: string | null;
  readonly acceptBy: string;
  readonly intendedAt: string;
  readonly closedAt: string | null;
  readonly withheld: readonly Withheld[];
  /** The verified receipt (JWS) and the public key (JWK as JSON) that verified it. */
  readonly receipt: string | null;
  readonly receiptKey: string | null;
}

export type Verdict = 'accepted' | 'rejected' | 'tombstone';

/** A receiver's final verdict on one attempt: one row, absorbing. */
export interface DecisionRow {
  readonly key: AcceptanceKey;
  readonly caseId: string;
  readonly verdict: Verdict;
  readonly code: string | null;
  /** `null` for a tombstone, which answers any bytes. */
  readonly digest: string | null;
  /**
   * The answer's data part (receipt or rejection) as JSON, exactly as it is sent, every time. Where another ledger decided, what came
   * from there: the rejection, or the receipt (compact JWS) alone.
   */
  readonly answer: string;
  /** The A2A task that carries the answer; `null` where another ledger decided, and for a tombstone that no offer was stored under. */
  readonly taskId: string | null;
  readonly epochBefore: number | null;
  readonly epochAfter: number | null;
  readonly decidedAt: string;
}

export type WorkState = 'open' | 'done' | 'failed' | 'superseded';

/** What an acceptance gives the receiver: exactly one per acceptance. */
export interface WorkItem {
  readonly id: string;
  readonly ref: CaseRef;
  readonly key: AcceptanceKey;
  readonly owner: string;
  readonly epoch: number;
  readonly contract: string;
  readonly state: WorkState;
  /** The accepted envelope, canonical JSON. */
  readonly envelope: string;
  /** What the owner said when it settled the item, JSON. */
  readonly result: string | null;
  readonly createdAt: string;
  readonly settledAt: string | null;
}

/** A write to a case inside the ledger; it changes nothing outside. */
export interface NoteRow {
  readonly id: string;
  readonly ref: CaseRef;
  readonly epoch: number;
  readonly writer: string;
  readonly text: string;
  readonly at: string;
}

/** started -> done | failed | unknown; unknown -> done | failed; failed is proved not to have happened. */
export type EffectState = 'started' | 'done' | 'failed' | 'unknown';

/** A side effect on a business system. */
export interface EffectRow {
  readonly ref: CaseRef;
  /** Without the epoch: unique on the case over all epochs and owners, and the target's idempotency key. */
  readonly key: string;
  readonly operation: string;
  readonly amount: Money | null;
  readonly epoch: number;
  readonly owner: string;
  /** `unknown` also where it was `started` and its limit has passed, by the database's clock. */
  readonly state: EffectState;
  readonly startedAt: string;
  /** Place in the case's audit chain at which the key was last started: tells that start from every other of the key. */
  readonly startedSeq: number;
  readonly limitAt: string;
  readonly settledAt: string | null;
  /** Reference to the target's record, such as a refund id. */
  readonly outcome: string | null;
}

/** An A2A task; `task` is its wire JSON. Visible only to `peer`, the authenticated agent that created it. */
export interface TaskRow {
  readonly id: string;
  readonly tenant: string;
  readonly peer: string;
  readonly contextId: string;
  readonly state: string;
  readonly version: number;
  /** UTC, when the status last changed. */
  readonly statusAt: string;
  readonly task: string;
  /** Set for the task of an offer, which only the ledger writes. */
  readonly handoffId: string | null;
}

/**
 * A case that may not go on until a person has acted: its ledger is proved older than what was witnessed, or (`receipt_contradicted`) a
 * receipt proves a change of owner that the ledger holds for impossible. Its chain would fork if it went on, so this stands beside it,
 * unaudited.
 */
export interface Quarantine {
  readonly ref: CaseRef;
  readonly reason:
    | 'epoch_regressed'
    | 'audit_regressed'
    | 'audit_forked'
    | 'case_missing'
    | 'receipt_contradicted';
  readonly witnessed: Readonly<Record<string, string | number>>;
  readonly found: Readonly<Record<string, string | number>>;
  readonly at: string;
}

/** A peer that has not answered the incarnation of an agent here for a while: no case, but all that can have gone to it, or come from it. */
export interface UnansweredPeer {
  readonly what: 'peer_unanswered';
  readonly ref: null;
  readonly since: string;
  readonly data: { readonly agent: string; readonly peer: string; readonly incarnation: string };
}

/** One thing that only a person can settle. `since`: from when on it is so. */
export type AttentionItem = CaseAttention | UnansweredPeer;

/** The same of one case. */
export type CaseAttention = { readonly ref: CaseRef; readonly since: string } & (
  | {
      readonly what: 'effect_unknown';
      readonly data: Pick<EffectRow, 'key' | 'operation' | 'amount' | 'owner' | 'epoch' | 'startedAt'>;
    }
  | {
      readonly what: 'case_quarantined';
      readonly data: Pick<Quarantine, 'reason' | 'witnessed' | 'found'>;
    }
  | {
      readonly what: 'question_open';
      /** `owner` is the sender, which is asked. */
      readonly data: Pick<AcceptanceKey, 'handoffId' | 'attempt'> & {
        readonly owner: string;
        readonly peer: string;
        readonly n: number;
        readonly question: string;
      };
    }
  | {
      readonly what: 'candidates_exhausted';
      readonly data: Pick<CandidatePlan, 'attempt' | 'epoch' | 'candidates' | 'reason'> & {
        readonly owner: string;
      };
    }
  | {
      readonly what: 'decision_waiting';
      /** An offer to `toAgent`. `state`: a person has to decide (`waiting`), or its check has not come to an end for long (`deciding`). */
      readonly data: Pick<AcceptanceKey, 'handoffId' | 'attempt' | 'sender'> &
        Pick<OfferRow, 'toAgent' | 'contract' | 'acceptBy'> & { readonly state: string };
    }
  /** `offer_in_doubt`: its receiver may own the case. `risk_double_owner`: and a person has taken the case over all the same. */
  | { readonly what: 'offer_in_doubt' | 'risk_double_owner'; readonly data: DoubtfulOffer }
);

/** What of an offer in doubt a person has to know. */
export interface DoubtfulOffer extends Pick<OfferRow, 'toAgent' | 'contract' | 'acceptBy' | 'epoch'> {
  readonly sender: string;
  readonly handoffId: string;
  readonly attempt: number;
}

/** One thing that happened to a case, before it is chained. `data` holds ids, digests, codes and what contracts declare loggable. */
export interface AuditFact {
  readonly type: AuditType;
  /** The agent that acted, as authentication found; or the person that its node acted for, as its operator named them. */
  readonly actor: string;
  readonly handoffId?: string;
  readonly attempt?: number;
  readonly epochBefore?: number;
  readonly epochAfter?: number;
  /** The rule that decided, such as `H3` or an error code. */
  readonly rule?: string;
  readonly digest?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export type AuditType =
  | 'case_opened'
  | 'case_imported'
  | 'case_recovered'
  | 'case_closed'
  | 'offer_intended'
  | 'offer_offered'
  | 'offer_closed'
  | 'offer_in_doubt'
  | 'offer_progressed'
  | 'answer_prepared'
  | 'plan_changed'
  | 'handoff_accepted'
  | 'handoff_rejected'
  | 'handoff_withdrawn'
  | 'handoff_released'
  | 'transfer_learned'
  | 'offer_received'
  | 'question_asked'
  | 'question_answered'
  | 'decision_awaited'
  | 'delivery_repeated'
  | 'delivery_conflict'
  | 'receipt_verified'
  | 'evidence_revoked'
  | 'owner_changed'
  | 'work_settled'
  | 'note_added'
  | 'effect_inherited'
  | 'effect_started'
  | 'effect_settled'
  | 'effect_reported'
  | 'write_refused';

/** A fact in its place: `hash` covers everything else, `prevHash` is the hash before it ('' for the first). */
export interface AuditEntry extends AuditFact {
  readonly tenant: string;
  readonly root: string;
  readonly caseId: string;
  readonly seq: number;
  readonly at: string;
  readonly prevHash: string;
  readonly hash: string;
}
