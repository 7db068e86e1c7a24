import type { AcceptanceKey, JsonObject } from '../core/index.js';
import type { AnswerTo, ControlRequest, Message, Task } from '../protocol/index.js';
import type { Principal } from '../trust/index.js';

/** Decides offers; the transport hands it every message that carries an envelope part. */
export interface OfferReceiver {
  /**
   * The task that carries the decision: COMPLETED with a receipt, or REJECTED with a rejection.
   * A resend of the same bytes gets the same task, whoever decided it and whenever.
   * @throws HoldfastError of class `error` or `refusal`: nothing was decided, the offer stays open
   */
  receive(message: Message, principal: Principal): Promise<Task>;
}

/** The receiver as its own node knows it. */
export interface Receiver extends OfferReceiver {
  /** Whether this process is judging an offer under the key at this moment. */
  isDeciding(key: AcceptanceKey): boolean;
}

/** Answers control messages; the transport hands it every message that carries a control part. */
export interface ControlReceiver {
  /**
   * The message that answers it. The same again does nothing new and is answered alike.
   * @throws control_invalid, verb_unknown, peer_not_allowed, case_quarantined; outcome_unknown past the time limit, since it may have been done
   */
  answer(message: Message, principal: Principal): Promise<Message>;
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
