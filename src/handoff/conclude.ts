import { type AcceptanceKey, HoldfastError, isHoldfastError, type Logger } from '../core/index.js';
import {
  parseReceiptPart,
  parseRejectionPart,
  type ReceiptClaims,
  type ReceiptPart,
  type RejectionPart,
} from '../envelope/index.js';
import { faultPoint } from '../faults/index.js';
import type { LedgerStore, OfferRow } from '../ledger/index.js';
import { RECEIPT_MEDIA_TYPE, REJECTION_MEDIA_TYPE, type Task } from '../protocol/index.js';
import { type PeerDirectory, type PeerKeySource, verifyReceipt } from '../trust/index.js';
import { answerPart } from './answers.js';
import type { HandOffResult } from './model.js';

export interface ConcludeOptions {
  readonly ledger: LedgerStore;
  readonly peers: PeerDirectory;
  readonly keys: PeerKeySource;
  readonly logger: Logger;
}

/**
 * What the ledger holds about an offer; null while it is open. An acceptance whose answer was lost is verified and its receipt kept
 * here. Where that is not possible now it stands all the same, since the shared ledger is the record of ownership.
 */
export async function concludeFromLedger(
  offer: OfferRow,
  options: ConcludeOptions,
): Promise<HandOffResult | null> {
  const { ledger } = options;
  switch (offer.state) {
    case 'intended':
    case 'offered':
    case 'in_doubt':
      return null;
    case 'withdrawn':
    case 'expired':
      return { state: offer.state, offer };
    case 'accepted': {
      const decision = await ledger.findDecision(offer.key);
      // Where another ledger decided, the receipt is all that came from there, and it was verified before.
      if (decision?.taskId === null) return acceptedResult(offer, null);
      const part = parseReceiptPart(JSON.parse(decision?.answer ?? 'null'));
      const kept = offer.receipt === null ? await tryToKeep(offer, part, options) : offer;
      return acceptedResult(kept, part.work_item);
    }
    case 'rejected': {
      const decision = await ledger.findDecision(offer.key);
      return rejectedResult(offer, parseRejectionPart(JSON.parse(decision?.answer ?? 'null')));
    }
  }
}

/**
 * What the receiver's task says, held against the ledger that both share: a receipt is verified and kept, a stored rejection is read
 * back, a rejection that closes nothing makes the sender withdraw.
 * @throws receipt_invalid, peer_error: the answer proves nothing, the offer is as it was
 */
export async function concludeFromTask(
  offer: OfferRow,
  task: Task,
  options: ConcludeOptions,
  withdraw: (key: AcceptanceKey, reason: string) => Promise<HandOffResult>,
): Promise<HandOffResult> {
  const { ledger } = options;
  if (task.status.state === 'TASK_STATE_COMPLETED') {
    const part = parseReceiptPart(answerPart(task, RECEIPT_MEDIA_TYPE));
    return acceptedResult(await keepReceipt(offer, part, options), part.work_item);
  }
  if (isRefusal(task)) {
    const part = parseRejectionPart(answerPart(task, REJECTION_MEDIA_TYPE));
    if (!part.final) {
      // It closes nothing at the receiver, and these bytes will never be read otherwise: take the offer back.
      const closed = await withdraw(offer.key, part.code);
      return closed.state === 'accepted' ? closed : rejectedResult(closed.offer, part);
    }
    const current = await ledger.getOffer(offer.key);
    const decided = current && (await concludeFromLedger(current, options));
    if (decided) return decided;
    throw new HoldfastError(
      'peer_error',
      `The receiver says that it stored the rejection ${part.code}, and this ledger has none: the kind is shared, and their ledgers are two. ` +
        'Name the same ledger on both sides, or make the kind separate.',
      { data: { rejection: part.code } },
    );
  }
  throw otherTask(task);
}

/** Rejected, or withdrawn at the receiver: either carries the part that says so. */
export function isRefusal({ status: { state } }: Pick<Task, 'status'>): boolean {
  return state === 'TASK_STATE_REJECTED' || state === 'TASK_STATE_CANCELED';
}

export function otherTask({ status }: Task): HoldfastError {
  return new HoldfastError('peer_error', `The receiver answered an offer with a task in ${status.state}.`);
}

export function acceptedResult(offer: OfferRow, workItem: string | null): HandOffResult {
  return { state: 'accepted', offer, owner: offer.toAgent, epoch: offer.epoch + 1, workItem };
}

export function rejectedResult(
  offer: OfferRow,
  { code, reason, fields, retryable, hint }: RejectionPart,
): HandOffResult {
  return { state: 'rejected', offer, code, reason, fields, retryable, hint: hint ?? null };
}

/** @throws receipt_invalid, peer_key_mismatch, peer_unreachable: nothing is kept */
async function keepReceipt(offer: OfferRow, part: ReceiptPart, options: ConcludeOptions): Promise<OfferRow> {
  const key = await verifyPart(part, offer.toAgent, claimsFor(offer), options);
  faultPoint('S6.before_commit');
  const receiptKey = JSON.stringify(key);
  try {
    const kept = await options.ledger.recordReceipt({ key: offer.key, receipt: part.receipt, receiptKey });
    faultPoint('S6.after_commit');
    return kept;
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== 'offer_decided') throw error;
    throw await contradicted(offer, options);
  }
}

/**
 * The receiver has signed for a case that this ledger does not hold for accepted: it lost that, or the receiver decides in another ledger,
 * where the kind is configured as `separate`. Two may own the case, so that nobody here goes on with it.
 */
async function contradicted(
  { key, ref, toAgent, epoch, digest, state }: OfferRow,
  { ledger }: ConcludeOptions,
): Promise<HoldfastError> {
  const { handoffId, attempt } = key;
  await ledger.quarantine({
    ref,
    reason: 'receipt_contradicted',
    witnessed: { handoffId, attempt, toAgent, epoch: epoch + 1, digest },
    found: { epoch, attempt, offer: state },
  });
  return new HoldfastError('case_quarantined');
}

async function tryToKeep(offer: OfferRow, part: ReceiptPart, options: ConcludeOptions): Promise<OfferRow> {
  try {
    return await keepReceipt(offer, part, options);
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    const { handoffId, attempt } = offer.key;
    options.logger.warn(
      { handoff: handoffId, attempt, code: error.code },
      'accepted, but its receipt is not verified yet',
    );
    return offer;
  }
}

/**
 * Verifies the receipt of an acceptance and that it is about what is expected; answers the key that verified it.
 * @throws receipt_invalid, peer_key_mismatch, peer_unreachable, peer_unknown
 */
export async function verifyPart(
  part: ReceiptPart,
  by: string,
  expected: Partial<ReceiptClaims>,
  options: Pick<ConcludeOptions, 'peers' | 'keys'>,
): Promise<object> {
  const peer = options.peers.find(by);
  if (!peer) throw new HoldfastError('peer_unknown', `The peer ${by} is not configured.`);
  const { claims, key } = await verifyReceipt(part.receipt, peer, options.keys);
  const wrong = Object.entries(expected).filter(
    ([name, value]) => claims[name as keyof ReceiptClaims] !== value,
  );
  if (wrong.length > 0) {
    throw new HoldfastError('receipt_invalid', 'The receipt is about another offer.', {
      fields: wrong.map(([path]) => ({ path, problem: 'is not that of the offer' })),
    });
  }
  if (part.epoch !== claims.new_epoch)
    throw new HoldfastError('receipt_invalid', 'The answer names another epoch.');
  return key;
}

/** A receipt must be about exactly this offer: a good signature over something else releases nothing. */
export function claimsFor(offer: OfferRow): Partial<ReceiptClaims> {
  return {
    iss: offer.toAgent,
    root: offer.ref.root,
    case_id: offer.ref.caseId,
    handoff_id: offer.key.handoffId,
    attempt: offer.key.attempt,
    from_agent: offer.key.sender,
    to_agent: offer.toAgent,
    old_epoch: offer.epoch,
    new_epoch: offer.epoch + 1,
    digest: offer.digest,
  };
}
