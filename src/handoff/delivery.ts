import {
  type AcceptanceKey,
  type Clock,
  ERROR_TABLE,
  type ErrorCode,
  HoldfastError,
  isHoldfastError,
  pause,
  pauseAbout,
} from '../core/index.js';
import { faultPoint } from '../faults/index.js';
import { claimIdOf, type KindDefinition, type OfferRow } from '../ledger/index.js';
import { rejectionPart } from './answers.js';
import { concludeFromLedger } from './conclude.js';
import { type CrossingOptions, withdrawAcross } from './crossing.js';
import { Lanes } from './lanes.js';
import type { Lease } from './lease.js';
import type { HandOffResult } from './model.js';
import { createWaiting, INPUT_REQUIRED, type WaitingOptions } from './waiting.js';

export interface DeliveryOptions extends CrossingOptions, Pick<WaitingOptions, 'onTask'> {
  readonly self: string;
  readonly lease: Lease;
  readonly clock: Clock;
  /** Waits between the tries of a caller who waits for the outcome, milliseconds; as many retries as there are entries. */
  readonly retryDelaysMs: readonly number[];
  /** The waits in the background grow from the first to the last of these, milliseconds. */
  readonly backoffMs: readonly [first: number, last: number];
  /** How long a caller waits for the outcome of what another process delivers, milliseconds. */
  readonly waitMs: number;
}

/** Brings stored offers to their end. An offer is delivered by one process at a time, which has claimed it. */
export interface Delivery {
  /** Whom an offer that is about to be stored is to be claimed for, in the same transaction, so that nobody else takes it up first. */
  prepare(): Promise<string>;
  /** Sends an offer that was stored so until something decides, or the caller has waited long enough: `queued`, until the receiver has it. */
  deliver(offer: OfferRow, queued?: boolean): Promise<HandOffResult>;
  /** Sends the answer that is kept for what the receiver of an open offer asks. @throws offer_unknown */
  answer(key: AcceptanceKey): Promise<HandOffResult>;
  /** A receiver is said to have news of a task: looks at the open offers that it is of. Never fails. */
  hear(tenant: string, peer: string, taskId: string): Promise<void>;
  /** Reads an offer back from the ledger and, while it is open, delivers the identical bytes. @throws offer_unknown */
  resend(key: AcceptanceKey): Promise<HandOffResult>;
  /**
   * Closes an open offer in the shared ledger, or at the receiver that has its own, or returns how it was decided; `open` and in doubt where
   * that receiver does not answer. @throws offer_unknown
   */
  withdraw(key: AcceptanceKey, reason: string): Promise<HandOffResult>;
  /** Goes on with an offer that this process has claimed until it is decided or `stop` is aborted. Never fails. */
  pursue(offer: OfferRow, stop: AbortSignal): Promise<void>;
  /** Resolves when nothing is being delivered. */
  idle(): Promise<void>;
}

/** How many offers one peer is sent at the same time in the background; what waits for one peer holds up no other. */
const LANES_PER_PEER = 4;
const POLL_MS = 50;

export function createDelivery(options: DeliveryOptions): Delivery {
  const { ledger, lease, clock, logger, self } = options;
  const peers = new Lanes();
  const attempts = new Lanes();
  /** Until when each is pursued; one that is claimed anew while its last try still runs goes on under the new claim. */
  const pursued = new Map<string, AbortSignal>();
  const modes = new Map<string, KindDefinition['mode']>();
  const underWay = new Set<Promise<unknown>>();
  const waiting = createWaiting({ ...options, isAcross, withdraw });
  let turn = 0;

  async function tracked<T>(work: Promise<T>): Promise<T> {
    underWay.add(work);
    try {
      return await work;
    } finally {
      underWay.delete(work);
    }
  }

  async function deliverOnceMore({ key }: OfferRow): Promise<HandOffResult> {
    const isPursued = () => pursued.has(claimIdOf(key));
    // The dispatcher of this very process has it: this is one more of its tries, and it goes on afterwards.
    if (isPursued()) return attempt(key);
    if (await lease.claimOffer(key)) return deliver(key);
    return isPursued() ? attempt(key) : outcomeElsewhere(key);
  }

  /** Of an offer that this process has claimed. */
  async function deliver(key: AcceptanceKey, queued = false): Promise<HandOffResult> {
    let decided = false;
    try {
      const result = await tryFor(key, queued);
      decided = result.state !== 'open';
      return result;
    } finally {
      // Not decided as far as this caller waits: from now on it is the dispatcher's.
      if (!decided) await lease.release({ key });
    }
  }

  async function tryFor(key: AcceptanceKey, queued: boolean): Promise<HandOffResult> {
    for (let tries = 0; ; tries++) {
      const result = tries === 0 ? await send(key, queued) : await attempt(key);
      if (result.state !== 'open') return result;
      const { problem, task } = result;
      // Nothing that this caller could wait for a moment for.
      if (problem === null && (queued || task?.state === INPUT_REQUIRED)) return result;
      const delayMs = problem === null || canRetry(problem) ? options.retryDelaysMs[tries] : undefined;
      if (delayMs === undefined) return result;
      await pauseAbout(delayMs);
    }
  }

  /** Somebody else delivers it: the ledger will say how it ends. */
  async function outcomeElsewhere(key: AcceptanceKey): Promise<HandOffResult> {
    const giveUpAt = performance.now() + options.waitMs;
    for (;;) {
      const offer = await reread(key);
      const decided = await concludeFromLedger(offer, options);
      if (decided) return decided;
      if (performance.now() > giveUpAt) {
        const reason = 'Another process of this agent is delivering the offer.';
        return { state: 'open', offer, problem: 'busy', reason };
      }
      await pause(POLL_MS);
    }
  }

  async function send(key: AcceptanceKey, returnImmediately = false): Promise<HandOffResult> {
    return concluded(key, async () => {
      faultPoint('S3.before_mark');
      const offer = await ledger.markOffered(key);
      // It was to be withdrawn since it was looked at: its bytes do not leave again.
      if (offer.state === 'in_doubt') return await close(key, 'in doubt', isPast(offer));
      faultPoint('S3.after_mark');
      return await waiting.read(
        offer,
        await options.client.send(offer.toAgent, offer.message, { returnImmediately }),
      );
    });
  }

  /** What comes of asking a receiver; where no answer was had, what the ledger says by then. */
  async function concluded(key: AcceptanceKey, ask: () => Promise<HandOffResult>): Promise<HandOffResult> {
    try {
      return await ask();
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      const offer = await reread(key);
      const decided = await concludeFromLedger(offer, options);
      if (decided) return decided;
      const { handoffId, attempt } = key;
      logger.warn({ handoff: handoffId, attempt, code: error.code }, 'offer not decided');
      return { state: 'open', offer, problem: error.code, reason: error.message };
    }
  }

  /** One try at finishing an open offer: look first, then close what is past its time, or send the identical bytes. */
  function attempt(key: AcceptanceKey): Promise<HandOffResult> {
    return attempts.run(claimIdOf(key), async () => {
      const offer = await reread(key);
      const decided = await concludeFromLedger(offer, options);
      if (decided) return decided;
      if (isPast(offer)) return close(key, 'past accept_by', true);
      if (offer.state === 'in_doubt') return close(key, 'in doubt', false);
      const found = await waiting.look(offer);
      if (found) return found;
      faultPoint('Q1.before_resend');
      return send(key);
    });
  }

  function isPast({ acceptBy }: OfferRow): boolean {
    return clock.now() > new Date(acceptBy);
  }

  /** Whether the receiver decides in a ledger of its own; of a kind that never changes. */
  async function isAcross({ key: { tenant }, kind }: OfferRow): Promise<boolean> {
    const id = `${tenant} ${kind}`;
    const mode = modes.get(id) ?? (await ledger.getKind(tenant, kind))?.mode;
    if (mode !== undefined) modes.set(id, mode);
    return mode === 'separate';
  }

  async function pursue({ key, toAgent, acceptBy }: OfferRow, stop: AbortSignal): Promise<void> {
    const id = claimIdOf(key);
    const isUnderWay = pursued.has(id);
    pursued.set(id, stop);
    if (isUnderWay) return;
    const lane = () => `${toAgent} ${turn++ % LANES_PER_PEER}`;
    const stopped = () => pursued.get(id)?.aborted !== false;
    for (let tries = 0; !stopped(); tries++) {
      const problem = await peers.run(lane(), async () => (stopped() ? 'busy' : problemOf(key)));
      if (problem === null) break;
      if (problem === 'case_quarantined') {
        await lease.release({ key });
        break;
      }
      const leftMs = Math.max(0, Date.parse(acceptBy) - clock.now().getTime());
      const waitMs = backoff(tries, problem);
      // Once past its time it is to be closed, and then asked about for as long as that takes.
      await pause(leftMs === 0 ? waitMs : Math.min(waitMs, leftMs + options.backoffMs[0]), pursued.get(id));
    }
    pursued.delete(id);
  }

  /** Why the offer is still open after one more try; `null` where it is decided. */
  async function problemOf(key: AcceptanceKey): Promise<ErrorCode | 'undecided' | null> {
    const { handoffId, attempt: number } = key;
    try {
      const result = await attempt(key);
      if (result.state === 'open') return result.problem ?? 'undecided';
      // The ledger says it is accepted; what the sender may show for it is still to be had.
      if (result.state === 'accepted' && result.offer.receipt === null) return 'receipt_invalid';
      logger.info({ handoff: handoffId, attempt: number, state: result.state }, 'open offer finished');
      return null;
    } catch (err) {
      const code = isHoldfastError(err) ? err.code : 'internal';
      logger.error({ handoff: handoffId, attempt: number, code, err }, 'an open offer could not be finished');
      return code;
    }
  }

  /** What only somebody's hand can mend is not tried often: it may be mended any time before `accept_by`. */
  function backoff(tries: number, problem: ErrorCode | 'undecided'): number {
    const [first, last] = options.backoffMs;
    const grown =
      problem === 'undecided' || canRetry(problem) ? Math.min(last, first * 2 ** Math.min(tries, 30)) : last;
    return grown * (0.5 + Math.random() / 2);
  }

  async function reread(key: AcceptanceKey): Promise<OfferRow> {
    const offer = await ledger.getOffer(key);
    if (!offer)
      throw new HoldfastError('offer_unknown', `There is no offer ${key.handoffId} attempt ${key.attempt}.`);
    return offer;
  }

  async function resend(key: AcceptanceKey): Promise<HandOffResult> {
    const offer = await reread(key);
    return (await concludeFromLedger(offer, options)) ?? deliverOnceMore(offer);
  }

  async function answer(key: AcceptanceKey): Promise<HandOffResult> {
    const offer = await reread(key);
    const decided = await concludeFromLedger(offer, options);
    return decided ?? concluded(key, () => waiting.answer(offer));
  }

  async function hear(tenant: string, peer: string, taskId: string): Promise<void> {
    const found = (await ledger.findSentTasks(tenant, self, taskId)).filter((one) => one.peer === peer);
    for (const { key } of found) await problemOf(key);
  }

  function withdraw(key: AcceptanceKey, reason: string): Promise<HandOffResult> {
    return close(key, reason, false);
  }

  async function close(key: AcceptanceKey, reason: string, expired: boolean): Promise<HandOffResult> {
    const offer = await reread(key);
    const known = await concludeFromLedger(offer, options);
    if (known) return known;
    faultPoint('W1.before_void');
    if (await isAcross(offer)) {
      const result = await withdrawAcross(offer, expired, options);
      faultPoint('W1.after_void');
      return result;
    }
    await voidOffer(offer, reason, expired);
    faultPoint('W1.after_void');
    const decided = await concludeFromLedger(await reread(key), options);
    if (!decided) throw new HoldfastError('internal', 'The offer is still open after it was voided.');
    return decided;
  }

  async function voidOffer({ key, ref }: OfferRow, reason: string, expired: boolean): Promise<void> {
    const meaning = ERROR_TABLE.withdrawn.meaning;
    await ledger.voidOffer({
      key,
      writer: self,
      reason,
      expired,
      answer: JSON.stringify(rejectionPart({ code: 'withdrawn', reason: meaning }, { key, ref }, true)),
    });
  }

  return {
    async prepare() {
      await lease.begin();
      return lease.holder;
    },
    deliver: ({ key }, queued) => tracked(deliver(key, queued)),
    answer: (key) => tracked(answer(key)),
    hear: (tenant, peer, taskId) => tracked(hear(tenant, peer, taskId)),
    resend: (key) => tracked(resend(key)),
    withdraw,
    pursue: (offer, stop) => tracked(pursue(offer, stop)),
    async idle() {
      while (underWay.size > 0) await Promise.allSettled(underWay);
    },
  };
}

function canRetry(problem: ErrorCode): boolean {
  return ERROR_TABLE[problem].retry === 'same';
}
