import type { AcceptanceKey, CaseRef } from '../core/index.js';
import type { Principal } from '../trust/index.js';
import type { Claim, DecideResult, DecisionTask } from './commands.js';

/** One question to the sender of an offer, and its answer; both `null` while it is open. */
export interface Clarification {
  /** From 1. */
  readonly n: number;
  readonly question: string;
  /** The answer's data part, JSON. */
  readonly answer: string | null;
  /** SHA-256 (hex) of the answer's canonical JSON. */
  readonly digest: string | null;
}

/**
 * `deciding`: it is being checked, or is to be. `asked`: the sender has a question to answer. `waiting`: somebody has to decide.
 * `decided`: the row is kept for its questions and answers.
 */
export type PendingState = 'deciding' | 'asked' | 'waiting' | 'decided';

/** An offer that was received and not decided at once, with the A2A task by which its sender follows it. */
export interface PendingOffer {
  readonly key: AcceptanceKey;
  readonly ref: CaseRef;
  readonly kind: string;
  readonly toAgent: string;
  readonly contract: string;
  /** SHA-256 (hex) of the canonical envelope. */
  readonly digest: string;
  /** The A2A message as it came, JSON; `null` once it is decided. */
  readonly message: string | null;
  /** Of the token with which it came. */
  readonly tokenId: string;
  readonly taskId: string;
  /** UTC with milliseconds. */
  readonly acceptBy: string;
  readonly state: PendingState;
  readonly clarifications: readonly Clarification[];
  readonly receivedAt: string;
  /** The process that is checking it. */
  readonly holder: string | null;
  /** Counts its changes. */
  readonly rev: number;
}

/** Stores an offer that is not decided yet, or says how one that is being checked stands now. */
export interface DeferCommand {
  readonly key: AcceptanceKey;
  readonly ref: CaseRef;
  readonly kind: string;
  readonly toAgent: string;
  readonly contract: string;
  readonly digest: string;
  readonly message: string;
  readonly acceptBy: string;
  readonly principal: Principal;
  readonly state: Exclude<PendingState, 'decided'>;
  /** With `asked`. */
  readonly question?: Pick<Clarification, 'n' | 'question'>;
  /** As it is from now on; of an offer that is stored already, its own. */
  readonly task: DecisionTask;
  /** The process that goes on to check it. */
  readonly holder?: string;
}

/** `stands`: it is stored already, in another state than could go to this one; nothing changed. */
export type DeferResult =
  | { readonly outcome: 'stored' | 'stands'; readonly pending: PendingOffer }
  | Exclude<DecideResult, { outcome: 'stored' }>;

/** The sender's answer to the open question. */
export interface AnswerCommand {
  readonly key: AcceptanceKey;
  readonly ref: CaseRef;
  readonly n: number;
  readonly answer: string;
  readonly digest: string;
  /** The message that it came in, JSON. */
  readonly message: string;
  readonly principal: Principal;
  /** What the contract declares loggable, for the audit. */
  readonly loggable: Readonly<Record<string, unknown>>;
  readonly holder?: string;
}

/**
 * `same`: it was given before. `conflict`: another was given. `unasked`: no such question is open. `expired`: it came too late. Only
 * where it is `stored` anything changed.
 */
export interface AnswerResult {
  readonly outcome: 'stored' | 'same' | 'conflict' | 'unasked' | 'expired';
  readonly pending: PendingOffer | null;
}

/** Undecided offers to `agent`: those to be checked that no living process has, and those past their `accept_by`. */
export type PendingClaim = Claim & { readonly key?: AcceptanceKey };

/** Of undecided ones, all of the agent where no state is named. */
export interface PendingFilter {
  readonly toAgent: string;
  readonly state?: Exclude<PendingState, 'decided'>;
  readonly limit?: number;
}

/** The part of the storage port that is about offers which are not decided at once; see `LedgerStore`. */
export interface PendingStore {
  /**
   * Stores an offer that is not decided yet, with its A2A task; or, of one that is stored and being checked, that its sender is asked or that
   * somebody has to decide. Whatever decision comes later under the key ends it in its own transaction, and saves that task as terminal.
   */
  deferOffer(command: DeferCommand): Promise<DeferResult>;
  /** Takes the sender's answer to the open question; the offer is to be checked again. */
  answerOffer(command: AnswerCommand): Promise<AnswerResult>;
  getPending(key: AcceptanceKey): Promise<PendingOffer | null>;
  /** The one that this task is of. */
  findPending(tenant: string, taskId: string): Promise<PendingOffer | null>;
  /** Undecided ones, oldest first. */
  listPending(tenant: string, filter: PendingFilter): Promise<PendingOffer[]>;
  /** Stored offers to `agent` (or only the one under `key`) that are to be checked, or are past their `accept_by` that no living process has; they are the holder's now. The oldest first. */
  claimPending(claim: PendingClaim): Promise<PendingOffer[]>;
}
