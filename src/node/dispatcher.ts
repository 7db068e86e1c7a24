import { type Clock, isHoldfastError, type Logger, pause, toUtc } from '../core/index.js';
import { faultPoint } from '../faults/index.js';
import type { Announcer, Delivery, Lease, Receiver, Sender, Worker } from '../handoff/index.js';
import type { LedgerStore } from '../ledger/index.js';
import type { PushDelivery } from '../transport/index.js';
import { attentionLog } from './attention.js';

export interface DispatcherParts {
  readonly self: string;
  readonly tenants: readonly string[];
  readonly ledger: Pick<LedgerStore, 'listAttention' | 'pruneNotifications' | 'pruneWatches'>;
  readonly lease: Lease;
  readonly delivery: Delivery;
  readonly sender: Pick<Sender, 'takeUpPlans'>;
  readonly worker: Worker;
  readonly receiver: Pick<Receiver, 'resume'>;
  readonly pushes: PushDelivery;
  readonly announcer: Pick<Announcer, 'ask'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly sweepMs: number;
  /** How long a notification that was given up is kept, milliseconds. */
  readonly keepDeadMs: number;
  /** Ends the A2A tasks of processes that live no more. */
  endAbandonedTasks(): Promise<void>;
}

/** Offers claimed at once; more are claimed right after. */
const BATCH = 100;
/** Between two looks at what has been kept long enough. */
const PRUNE_MS = 600_000;
/** Notifications removed at once. */
const PRUNED = 500;

/**
 * Finishes what nobody who lives works on: open offers, accepted work and A2A tasks of a process that died, and what a caller here has
 * given up waiting for. Any number of processes of an agent do this at the same time; what each works on it has claimed, so there is no
 * leader, and nothing is done by two.
 */
export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** Of `performance.now()`. */
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = Promise.all([this.#run(), this.#announce()]).then(() => undefined);
  }

  /** Claims nothing more, and begins no further try. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { logger, sweepMs } = this.#parts;
    const { signal } = this.#stopping;
    const watch = attentionLog(this.#parts);
    while (!signal.aborted) {
      try {
        for (const tenant of this.#parts.tenants) {
          await this.#takeUp(tenant);
          await watch(tenant);
        }
        await this.#parts.endAbandonedTasks();
        await this.#prune();
        faultPoint('N2.recovered');
      } catch (err) {
        const code = isHoldfastError(err) ? err.code : 'internal';
        logger.error({ code, err }, 'what is left to do could not be looked up; the next look comes soon');
      }
      // Processes that started together need not look together.
      await pause(sweepMs * (0.75 + Math.random() / 2), signal);
    }
  }

  /** By itself: a peer that is slow to answer holds up nothing else. */
  async #announce(): Promise<void> {
    const { announcer, logger, sweepMs } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await announcer.ask();
      } catch (err) {
        const code = isHoldfastError(err) ? err.code : 'internal';
        logger.error({ code, err }, 'which peers have answered could not be looked up');
      }
      await pause(sweepMs * (0.75 + Math.random() / 2), signal);
    }
  }

  async #prune(): Promise<void> {
    const { tenants, self: agent, ledger, clock, keepDeadMs, logger } = this.#parts;
    if (performance.now() - this.#prunedAt < PRUNE_MS) return;
    this.#prunedAt = performance.now();
    const before = toUtc(new Date(clock.now().getTime() - keepDeadMs));
    for (const tenant of tenants) {
      const removed = await ledger.pruneNotifications({ tenant, agent, before, limit: PRUNED });
      await ledger.pruneWatches(tenant, agent);
      if (removed > 0) logger.warn({ removed }, 'notifications that were given up long ago are removed');
    }
  }

  async #takeUp(tenant: string): Promise<void> {
    const { lease, delivery, sender, worker, receiver, pushes, logger } = this.#parts;
    const { signal } = this.#stopping;
    const work = await worker.resume(tenant);
    const pending = await receiver.resume(tenant);
    await pushes.takeUp(tenant);
    await sender.takeUpPlans(tenant);
    let offers = 0;
    for (let claimed = BATCH; claimed === BATCH && !signal.aborted; offers += claimed) {
      const found = await lease.claimOffers(tenant, BATCH);
      claimed = found.length;
      if (claimed === 0) break;
      // What was claimed counts for this term only. A signal each: many wait at the same time.
      for (const offer of found) void delivery.pursue(offer, AbortSignal.any([signal, lease.term]));
    }
    if (work + offers + pending > 0) logger.info({ work, offers, pending }, 'taken up');
  }
}
