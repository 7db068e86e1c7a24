import { HoldfastError, isHoldfastError } from '../core/index.js';
import {
  parseReceiptPart,
  parseRejectionPart,
  type ReceiptPart,
  type RejectionPart,
} from '../envelope/index.js';
import { faultPoint } from '../faults/index.js';
import type { OfferRow } from '../ledger/index.js';
import {
  type ControlDecision,
  RECEIPT_MEDIA_TYPE,
  REJECTION_MEDIA_TYPE,
  type Task,
} from '../protocol/index.js';
import { answerPart } from './answers.js';
import {
  acceptedResult,
  type ConcludeOptions,
  claimsFor,
  concludeFromLedger,
  isRefusal,
  otherTask,
  rejectedResult,
  verifyPart,
} from './conclude.js';
import type { HandOffResult } from './model.js';
import type { PeerClient } from './port.js';

/*
 * How an offer ends whose receiver has a ledger of its own: by what that ledger has decided, and by nothing else.
 *   a verified receipt   -> release: owner and epoch move here too
 *   a stored rejection   -> closed; the case stays
 *   a tombstone          -> closed; the case stays, and a late arrival is refused there
 * Silence, errors, time and `none` settle nothing. A withdrawal that is not answered leaves the offer in doubt, also after a person has taken
 * the case over by force: its receiver is asked on, and told.
 */

export interface CrossingOptions extends ConcludeOptions {
  readonly client: PeerClient;
}

/** What the receiver's task says. `withdraw` closes what a rejection left open. @throws receipt_invalid, peer_error, and the refusals of the ledger */
export async function concludeAcross(
  offer: OfferRow,
  task: Task,
  options: CrossingOptions,
  withdraw: () => Promise<HandOffResult>,
): Promise<HandOffResult> {
  if (task.status.state === 'TASK_STATE_COMPLETED') {
    return release(offer, parseReceiptPart(answerPart(task, RECEIPT_MEDIA_TYPE)), options);
  }
  if (!isRefusal(task)) throw otherTask(task);
  const part = parseRejectionPart(answerPart(task, REJECTION_MEDIA_TYPE));
  if (part.final) {
    const verdict = part.code === 'withdrawn' ? 'tombstone' : 'rejected';
    return close(offer, part, { verdict, digest: offer.digest, expired: false }, options);
  }
  // It closes nothing at the receiver, and these bytes will never be read otherwise: take the offer back.
  const closed = await withdraw();
  return closed.state === 'withdrawn' || closed.state === 'expired'
    ? rejectedResult(closed.offer, part)
    : closed;
}

/** An offer that is stored at its receiver and not decided. */
export interface Sighting {
  readonly taskId: string;
  /** A2A's name of the state; `null` where it was not said. */
  readonly state: string | null;
  readonly question: { readonly n: number; readonly text: string } | null;
}

/**
 * Asks the receiver what it has decided; where it has stored the offer undecided, `undecided` says what comes of that. Null where nothing
 * is stored there, which settles nothing.
 */
export async function lookAcross(
  offer: OfferRow,
  options: CrossingOptions,
  undecided: (seen: Sighting) => Promise<HandOffResult>,
): Promise<HandOffResult | null> {
  const { root, handoffId, attempt } = offer.key;
  const answer = await options.client.control(offer.toAgent, {
    verb: 'handoff.query',
    root,
    handoff_id: handoffId,
    attempt,
  });
  if (answer.decision) return fromDecision(offer, answer.decision, false, options);
  const { task_id: taskId, question: asked } = answer;
  if (answer.state !== 'deciding' || taskId === undefined) return null;
  const question = asked === undefined ? null : { n: asked.n, text: asked.question };
  return undecided({ taskId, state: null, question });
}

/**
 * Has the receiver close the offer, or say what it decided before. Where it does not answer, the offer is in doubt and stays open.
 * @throws case_quarantined
 */
export async function withdrawAcross(
  offer: OfferRow,
  expired: boolean,
  options: CrossingOptions,
): Promise<HandOffResult> {
  const { root, handoffId, attempt } = offer.key;
  const takeover = offer.state === 'in_doubt' ? await takeoverSince(offer, options) : undefined;
  try {
    const answer = await options.client.control(offer.toAgent, {
      verb: 'handoff.withdraw',
      root,
      handoff_id: handoffId,
      attempt,
      ...(takeover === undefined ? {} : { takeover }),
    });
    if (answer.decision === undefined) throw new HoldfastError('peer_error');
    return await fromDecision(offer, answer.decision, expired, options);
  } catch (error) {
    if (!isHoldfastError(error) || error.code === 'case_quarantined') throw error;
    options.logger.warn({ handoff: handoffId, attempt, code: error.code }, 'withdrawal not answered');
    const now = await options.ledger.getOffer(offer.key);
    const decided = now && (await concludeFromLedger(now, options));
    if (decided) return decided;
    faultPoint('W2.before_doubt');
    const doubted = await options.ledger.markInDoubt(offer.key);
    faultPoint('W2.after_doubt');
    return { state: 'open', offer: doubted, problem: error.code, reason: error.message };
  }
}

/** Where a person took the case over by force, its receiver is told: one that has accepted owns it as well. */
async function takeoverSince(
  { ref, epoch }: OfferRow,
  { ledger }: CrossingOptions,
): Promise<string | undefined> {
  const row = await ledger.getCase(ref);
  if (row === null || row.epoch === epoch) return undefined;
  return (await ledger.listTransfers(ref)).find(({ oldEpoch }) => oldEpoch === epoch + 1)?.receipt;
}

function fromDecision(
  offer: OfferRow,
  { verdict, answer, digest }: ControlDecision,
  expired: boolean,
  options: CrossingOptions,
): Promise<HandOffResult> {
  if (verdict === 'accepted') return release(offer, parseReceiptPart(answer), options);
  // The key is used up by other bytes, of a time that this ledger has lost: these can be accepted no more.
  const isOfOthers = verdict === 'rejected' && digest !== undefined && digest !== offer.digest;
  const closing =
    verdict === 'withdrawn' || isOfOthers
      ? { verdict: 'tombstone' as const, digest: null, expired }
      : { verdict, digest: digest ?? null, expired };
  return close(offer, parseRejectionPart(answer), closing, options);
}

/** @throws receipt_invalid, peer_key_mismatch, peer_unreachable: nothing is released; case_quarantined */
async function release(offer: OfferRow, part: ReceiptPart, options: CrossingOptions): Promise<HandOffResult> {
  const { key, ref, toAgent, epoch, digest } = offer;
  const receiptKey = JSON.stringify(await verifyPart(part, toAgent, claimsFor(offer), options));
  const { receipt } = part;
  faultPoint('S6.before_commit');
  const released = await options.ledger.releaseOffer({
    key,
    ref,
    toAgent,
    oldEpoch: epoch,
    newEpoch: epoch + 1,
    digest,
    receipt,
    receiptKey,
  });
  faultPoint('S6.after_commit');
  return acceptedResult(released, part.work_item);
}

/** @throws peer_error where the part is about another attempt, or closes nothing; duplicate_conflict, offer_decided */
async function close(
  offer: OfferRow,
  part: RejectionPart,
  closing: { verdict: 'rejected' | 'tombstone'; digest: string | null; expired: boolean },
  options: CrossingOptions,
): Promise<HandOffResult> {
  const { key, ref } = offer;
  const isIts =
    part.final &&
    part.root === ref.root &&
    part.case_id === ref.caseId &&
    part.handoff_id === key.handoffId &&
    part.attempt === key.attempt;
  if (!isIts) throw new HoldfastError('peer_error', 'The rejection is not the final one of this attempt.');
  const { verdict, expired } = closing;
  faultPoint('S7.before_close');
  const closed = await options.ledger.closeOffer({
    key,
    verdict,
    code: part.code,
    digest: verdict === 'tombstone' ? null : closing.digest,
    answer: JSON.stringify(part),
    expired,
  });
  faultPoint('S7.after_close');
  if (closed.state === 'rejected') return rejectedResult(closed, part);
  return { state: closed.state === 'expired' ? 'expired' : 'withdrawn', offer: closed };
}
