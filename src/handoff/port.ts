import type { JsonObject } from '../core/index.js';
import type { Message, Task } from '../protocol/index.js';
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

/** What the sender needs of the wire. */
export interface PeerClient {
  /** The peer's Agent Card as wire JSON. @throws peer_unreachable, peer_error */
  card(peerUrl: string): Promise<JsonObject>;
  /**
   * Sends exactly this message (its JSON) as a blocking SendMessage and returns the task it answered with.
   * @throws outcome_unknown when the bytes may have arrived but no answer came; peer_error when the peer
   *   answered with an error that decides nothing; peer_unreachable when no connection was made; unauthenticated
   */
  send(peerUrl: string, message: string): Promise<Task>;
}
