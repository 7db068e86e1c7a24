import { isHoldfastError, type Logger, pause } from '../core/index.js';
import type { Lease } from '../handoff/index.js';
import type { DuePush, LedgerStore, NotificationSettled } from '../ledger/index.js';
import { notificationIdOf, type PushOutcome, type SendPush } from './push-sender.js';

export interface PushDeliveryOptions {
  readonly ledger: Pick<LedgerStore, 'settleNotification'>;
  readonly lease: Lease;
  readonly send: SendPush;
  readonly logger: Logger;
  /** Waits after a failed attempt, milliseconds: the first, the second, and so on; the last for all others. */
  readonly backoffMs: readonly number[];
  /** A notification that is this old and fails is given up, milliseconds. */
  readonly giveUpMs: number;
}

/** Brings notifications to their endpoints, those of one configuration one after another, at least once. */
export interface PushDelivery {
  /** Begins what is due and nobody who lives works on. Tells how many configurations. */
  takeUp(tenant: string): Promise<number>;
  /** Begins nothing more. What is under way is given a moment: another process sends it again. */
  stop(): Promise<void>;
}

/** Configurations at once, and claimed at once. An attempt that hangs keeps one of these until its time is over. */
const MAX_RUNNING = 128;
const BATCH = 32;
/** To one origin, before no more of its configurations are claimed: what hangs there holds up nobody else. */
const ENOUGH_PER_ORIGIN = 4;
const STOP_MS = 1_000;

export function createPushDelivery(options: PushDeliveryOptions): PushDelivery {
  const { ledger, lease, send, logger, backoffMs, giveUpMs } = options;
  const running = new Map<string, { readonly origin: string; readonly ended: Promise<void> }>();
  const stopping = new AbortController();

  function waitMs(tries: number, retryAfterMs: number): number {
    const wait = backoffMs[Math.min(tries, backoffMs.length - 1)] ?? 0;
    // Those that failed together need not come back together.
    return Math.max(Math.round(wait * (0.75 + Math.random() / 2)), retryAfterMs);
  }

  async function settle(due: DuePush, outcome: PushOutcome): Promise<NotificationSettled> {
    const { tenant, pushId, seq, tries } = due.notification;
    const failed = outcome.what === 'failed';
    const againMs = failed ? waitMs(tries, outcome.retryAfterMs) : 0;
    const settled = await ledger.settleNotification({
      tenant,
      pushId,
      seq,
      holder: lease.holder,
      outcome: failed ? { what: 'failed', reason: outcome.reason, againMs, giveUpMs } : outcome,
    });
    const fields = {
      notification: notificationIdOf(due),
      task: due.push.taskId,
      origin: due.push.origin,
      tries: tries + 1,
      reason: failed ? outcome.reason : outcome.what,
    };
    if (settled.became === 'dead') logger.warn(fields, 'a notification is given up; it waits for a person');
    if (settled.became === 'waiting')
      logger.info({ ...fields, againMs }, 'a notification was not delivered; it is tried again');
    return settled;
  }

  async function run(first: DuePush, term: AbortSignal): Promise<void> {
    for (let due: DuePush | null = first; due !== null && !stopping.signal.aborted && !term.aborted; ) {
      const outcome: PushOutcome = await send(due);
      due = (await settle(due, outcome)).next;
    }
  }

  function begin(due: DuePush): void {
    const { pushId, origin } = due.push;
    const ended = run(due, lease.term)
      .catch((err: unknown) => {
        // What it holds is taken up again: at the next look, or by others.
        const code = isHoldfastError(err) ? err.code : 'internal';
        logger.error({ code, err, push: pushId }, 'what came of a notification could not be stored');
      })
      .finally(() => running.delete(pushId));
    running.set(pushId, { origin, ended });
  }

  function busyOrigins(): string[] {
    const counts = new Map<string, number>();
    for (const { origin } of running.values()) counts.set(origin, (counts.get(origin) ?? 0) + 1);
    return [...counts].filter(([, count]) => count >= ENOUGH_PER_ORIGIN).map(([origin]) => origin);
  }

  return {
    async takeUp(tenant) {
      let begun = 0;
      for (let more = true; more && !stopping.signal.aborted; ) {
        const limit = Math.min(BATCH, MAX_RUNNING - running.size);
        if (limit <= 0) break;
        const found = await lease.claimPushes(tenant, limit, {
          without: busyOrigins(),
          working: [...running.keys()],
        });
        for (const due of found) begin(due);
        begun += found.length;
        more = found.length === limit;
      }
      return begun;
    },
    async stop() {
      stopping.abort();
      const waiting = new AbortController();
      const ended = Promise.all([...running.values()].map((one) => one.ended));
      await Promise.race([ended, pause(STOP_MS, waiting.signal)]);
      waiting.abort();
    },
  };
}
