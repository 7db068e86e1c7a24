import type { AcceptanceKey, JsonObject } from '../core/index.js';
import type { DecisionRow, PendingFilter, PendingOffer } from '../ledger/index.js';
import type { AnswerTo, ControlRequest, Message, Task } from '../protocol/index.js';
import type { Principal } from '../trust/index.js';
import type { AcceptPendingInput, RejectPendingInput } from './model.js';

/** Decides offers; the transport hands it every message that carries an envelope part. */
export interface OfferReceiver {
  /**
   * The task of the offer. Decided: COMPLETED with a receipt, REJECTED with a rejection, or CANCELED with one where it was withdrawn.
   * A resend of the same bytes gets the same task, whoever decided it and whenever.
   * @throws HoldfastError of class `error` or `refusal`: nothing was decided, the offer stays open
   */
  receive(message: Message, principal: Principal, options?: ReceiveOptions): Promise<Task>;
  /**
   * Takes the sender's answer to the question in the task that its message names. The same again changes nothing.
   * @throws answer_invalid, duplicate_conflict where another answer was given
   */
  answer(message: Message, principal: Principal, options?: ReceiveOptions): Promise<Task>;
  /** Resolves when this process has changed the task of an offer, and after `ms` in any case: others may have. */
  untilChanged(taskId: string, ms: number): Promise<void>;
}

export interface ReceiveOptions {
  /** The offer is stored, and its task answered as it is then; otherwise once it is decided or a question is open, or after a while. */
  readonly returnImmediately?: boolean;
}

/** What persons do with offers that are stored undecided. */
export interface PendingDecisions {
  /** Undecided offers to this agent, oldest first. */
  listPending(tenant: string, filter?: Omit<PendingFilter, 'toAgent'>): Promise<PendingOffer[]>;
  /** @throws offer_unknown, offer_decided, contract_refused, and whatever refuses an acceptance; nothing is decided then */
  acceptPending(input: AcceptPendingInput): Promise<DecisionRow>;
  /** @throws offer_unknown, offer_decided, usage, personal_data */
  rejectPending(input: RejectPendingInput): Promise<DecisionRow>;
}

/** The receiver as its own node knows it. */
export interface Receiver extends OfferReceiver, PendingDecisions {
  /** Whether this process is judging an offer under the key at this moment. */
  isDeciding(key: AcceptanceKey): boolean;
  /** Tells those who wait for the task here. */
  changed(taskId: string): void;
  /** Checks, in the background, stored offers that no living process has, and ends those whose time is over. Tells how many. */
  resume(tenant: string): Promise<number>;
  /** Begins nothing more, and resolves when nothing is being checked in the background. */
  stop(): Promise<void>;
}

/** Answers control messages; the transport hands it every message that carries a control part. */
export interface ControlReceiver {
  /**
   * The message that answers it. The same again does nothing new and is answered alike.
   * @throws control_invalid, verb_unknown, peer_not_allowed, case_quarantined; outcome_unknown past the time limit, since it may have been done
   */
  answer(message: Message, principal: Principal): Promise<Message>;
  /**
   * CancelTask on the task of an offer: the offer is withdrawn, unless it is decided. Nothing happens where the task is of no stored offer of
   * this sender. @throws peer_not_allowed, case_quarantined
   */
  withdrawTask(taskId: string, principal: Principal): Promise<void>;
}

/** What the sender needs of the wire. */
export interface PeerClient {
  /** The peer's Agent Card as wire JSON. @throws peer_unreachable, peer_error */
  card(peerUrl: string): Promise<JsonObject>;
  /**
   * Sends exactly this message (its JSON) by SendMessage and returns the task it answered with: blocking, as long as the peer holds the
   * call, unless it is to return immediately.
   * @throws outcome_unknown when the bytes may have arrived but no answer came; peer_error when the peer
   *   answered with an error that decides nothing; peer_unreachable when no connection was made; unauthenticated
   */
  send(peerUrl: string, message: string, options?: { readonly returnImmediately?: boolean }): Promise<Task>;
  /** Reads a task that this node made there. @throws not_found, peer_error, peer_unreachable, outcome_unknown, unauthenticated */
  getTask(peerUrl: string, taskId: string): Promise<Task>;
  /**
   * Sends one control message and returns the answer to it, within the time limit that all of it has.
   * @throws outcome_unknown when no answer came in time, which is not to have failed; peer_error, peer_unreachable, unauthenticated
   */
  control<R extends ControlRequest>(peerUrl: string, request: R): Promise<AnswerTo<R>>;
}
