import type { JsonObject } from '../core/index.js';

/*
 * Control messages: one data part with a verb, answered by one message with one data part. They speak of offers by their acceptance
 * key, of which tenant and sender are never in the document: those are whoever authenticated.
 */

/** All of one control message, question and answer, milliseconds. When it has passed nothing is known, and nothing has failed. */
export const CONTROL_LIMIT_MS = 30_000;
/** Decisions in one answer about a case; the newest ones. */
export const MAX_CONTROL_DECISIONS = 10;
/** One question to a sender, characters (code points). */
export const MAX_QUESTION_CHARS = 2_000;
/** Receipts in one page. */
export const MAX_CONTROL_RECEIPTS = 50;
/** Open offers in one announcement. */
export const MAX_HELD_OFFERS = 100;
/** What has been decided about one attempt. */
export interface AttemptQuery {
  readonly verb: 'handoff.query';
  readonly root: string;
  readonly handoff_id: string;
  readonly attempt: number;
}

/** What has been decided about all attempts on one case. */
export interface CaseQuery {
  readonly verb: 'handoff.query';
  readonly root: string;
  readonly case_id: string;
}

/** Closes an attempt that is not decided; one that is stays as it is. */
export interface WithdrawRequest {
  readonly verb: 'handoff.withdraw';
  readonly root: string;
  readonly handoff_id: string;
  readonly attempt: number;
  /** The receipt (compact JWS) of a takeover by force, where the sender had no answer before: who has accepted learns of it so. */
  readonly takeover?: string;
}

/** One offer that its sender holds open. */
export interface HeldOffer {
  readonly root: string;
  readonly handoff_id: string;
  readonly attempt: number;
}

/**
 * Says under which incarnation the asker works now, and asks for the receipts that name it. Of the offers to who is asked that were made
 * under an earlier incarnation, only those in `open` still count.
 */
export interface LedgerAnnouncement {
  readonly verb: 'ledger.announce';
  readonly incarnation: string;
  /** UTC; when it began. */
  readonly since: string;
  /** At most 100; more in a next message. */
  readonly open: readonly HeldOffer[];
  /** Where the page of receipts begins, as the page before said. */
  readonly cursor?: string;
}

export type ControlRequest = AttemptQuery | CaseQuery | WithdrawRequest | LedgerAnnouncement;

/** One stored decision, with the data part of its answer as it was sent and ever will be. */
export interface ControlDecision {
  readonly handoff_id: string;
  readonly attempt: number;
  readonly verdict: 'accepted' | 'rejected' | 'withdrawn';
  readonly decided_at: string;
  /** Of the envelope that was decided about; absent for a withdrawn attempt, whatever its bytes. */
  readonly digest?: string;
  /** Of the A2A task that carries the answer, where there is one. */
  readonly task_id?: string;
  readonly answer: JsonObject;
}

/** A question that is open at the receiver. */
export interface ControlQuestion {
  /** From 1, in the order in which they were asked. */
  readonly n: number;
  readonly question: string;
}

/** `none`: no decision is stored now, which proves nothing about later. `deciding`: the offer is being judged, or is stored and waits. */
export interface AttemptAnswer {
  readonly verb: 'handoff.query' | 'handoff.withdraw';
  readonly root: string;
  readonly handoff_id: string;
  readonly attempt: number;
  readonly state: 'decided' | 'deciding' | 'none';
  /** Exactly where the state is `decided`. */
  readonly decision?: ControlDecision;
  /** Of the A2A task of an offer that is stored undecided. */
  readonly task_id?: string;
  /** What the sender is asked, where the offer waits for an answer. */
  readonly question?: ControlQuestion;
}

export interface CaseAnswer {
  readonly verb: 'handoff.query';
  readonly root: string;
  readonly case_id: string;
  /** Newest first. */
  readonly decisions: readonly ControlDecision[];
  /** Whether there are older ones. */
  readonly more: boolean;
}

/** The incarnation is stored; here is a page of receipts. */
export interface LedgerAnswer {
  readonly verb: 'ledger.announce';
  readonly incarnation: string;
  /** Compact JWS. */
  readonly receipts: readonly string[];
  /** Where the next page begins; absent with the last one. */
  readonly next?: string;
}

export type ControlAnswer = AttemptAnswer | CaseAnswer | LedgerAnswer;

/** The answer that belongs to each request. */
export type AnswerTo<R extends ControlRequest> = R extends LedgerAnnouncement
  ? LedgerAnswer
  : R extends CaseQuery
    ? CaseAnswer
    : AttemptAnswer;
