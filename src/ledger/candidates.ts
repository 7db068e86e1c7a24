import type { AcceptanceKey, CaseRef } from '../core/index.js';

/** One agent of an ordered list that a case is offered to, one after another. */
export interface Candidate {
  /** URL */
  readonly agent: string;
  /** The attempt that was made with it; `null` while none is. */
  readonly attempt: number | null;
  /** Why it was passed over without an attempt. */
  readonly passed: string | null;
}

/**
 * Whom a case goes to next if the offer under way closes without an acceptance. It is worth something only while the case is open, at this
 * epoch and owner, and `attempt` is the last attempt of the handoff: whatever else happens to the case ends it.
 * `active -> exhausted`: nobody is left, or a rejection that holds for every candidate; a person has to see to it. `-> ended`: it is of no
 * more use, and `reason` says why.
 */
export interface CandidatePlan {
  readonly ref: CaseRef;
  /** The agent that hands over. */
  readonly sender: string;
  readonly epoch: number;
  /** The attempt under way, or made last. */
  readonly attempt: number;
  readonly candidates: readonly Candidate[];
  /** Id of the person who gets the case when nobody is left. */
  readonly escalateTo: string | null;
  /** How long each may take to accept, milliseconds. */
  readonly acceptWithinMs: number;
  readonly state: 'active' | 'exhausted' | 'ended';
  readonly reason: string | null;
  /** UTC, of the last change. */
  readonly at: string;
}

/** A step of a plan, in the transaction of the attempt that it makes. */
export interface PlanStep extends Pick<CandidatePlan, 'candidates' | 'escalateTo' | 'acceptWithinMs'> {
  /** The attempt that the plan stands at; `null`: it begins with this one. */
  readonly from: number | null;
}

/** A plan changes without an attempt, if it is active and stands at `from`. */
export interface SetPlanCommand
  extends Pick<CandidatePlan, 'ref' | 'sender' | 'candidates' | 'state' | 'reason'> {
  readonly from: number;
}

/** The receiver's task of an own offer that was not decided at once, as it was last read there. */
export interface SentTask {
  readonly key: AcceptanceKey;
  readonly ref: CaseRef;
  readonly peer: string;
  readonly taskId: string;
  /** A2A's name of the state. */
  readonly state: string;
  /** What the receiver asked last. */
  readonly question: { readonly n: number; readonly text: string } | null;
  /** The message (JSON) that answers question `n`, the same bytes every time. */
  readonly answer: { readonly n: number; readonly message: string } | null;
  /** UTC, of the last change. */
  readonly at: string;
}

export interface NoteTaskCommand extends Pick<SentTask, 'key' | 'taskId' | 'state' | 'question'> {}

export interface AnswerQuestionCommand {
  readonly key: AcceptanceKey;
  readonly n: number;
  readonly message: string;
  /** The names of the facts in it, for the audit. */
  readonly facts: readonly string[];
}
