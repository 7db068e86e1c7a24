import type { Contract } from '../contract/index.js';
import { isHoldfastError, type Logger, pauseAbout } from '../core/index.js';
import { type EnvelopeRegistry, readStoredEnvelope } from '../envelope/index.js';
import type { EvidenceStore } from '../evidence/index.js';
import { faultPoint } from '../faults/index.js';
import type { LedgerStore, WorkItem } from '../ledger/index.js';
import { checkArguments } from './arguments.js';
import { runEffect } from './effects.js';
import type { Lease } from './lease.js';
import type { AcceptedWork, EffectInput, ReceivedContract } from './model.js';
import { verifiedEvidence } from './named-evidence.js';
import { clarificationsOf } from './pending.js';
import { storedResult } from './result.js';

export interface WorkerOptions {
  readonly self: string;
  readonly ledger: LedgerStore;
  readonly envelopes: EnvelopeRegistry;
  readonly store: EvidenceStore;
  readonly logger: Logger;
  readonly lease: Lease;
  /** Waits between the runs of a handler that throws, milliseconds; as many more runs as there are entries. */
  readonly retryDelaysMs: readonly number[];
  /** Whether any handler here does work; without one, open items are left to processes that have some, and to people. */
  works(): boolean;
  /** Resolves once effects can start, as far as that is a matter of a moment. */
  ready(): Promise<void>;
  received(contract: string): ReceivedContract | null;
}

export interface Worker {
  /** Runs the handler's work on an accepted item in the background; items without a handler wait for a person. */
  start(item: WorkItem): void;
  /** Starts the work on open items that no living process has, such as those of one that died. */
  resume(tenant: string): Promise<number>;
  /** Begins nothing more, and resolves when no handler is running. */
  stop(): Promise<void>;
}

interface Run {
  claimed: boolean;
  /** Of the lease when the item was claimed last, which may be while its handler still runs. */
  term: AbortSignal;
  ended: Promise<void>;
}

/** Of items taken over; one that was just accepted starts at once, as long as its sender is heard. */
const MAX_RESUMED = 64;

/**
 * Accepted work runs at least once: another process, or this one's next start, takes it up after a crash, and effect keys keep it from
 * acting twice. An item is run by one process at a time, which has claimed it. A handler that throws leaves its item open and is run
 * again after a while; one that throws each time is parked: this process keeps the item, so that nobody runs into it again, until a
 * person settles it or the process ends.
 */
export function createWorker(options: WorkerOptions): Worker {
  const { ledger, lease, logger } = options;
  const running = new Map<string, Run>();
  const parked = new Set<string>();
  const stopping = new AbortController();

  function begin(item: WorkItem, claim: () => Promise<boolean>): void {
    const received = options.received(item.contract);
    const work = received?.handler.work;
    if (!work || stopping.signal.aborted || running.has(item.id) || parked.has(item.id)) return;
    const run: Run = { claimed: false, term: lease.term, ended: Promise.resolve() };
    running.set(item.id, run);
    // Whatever fails, and be it before the handler runs, fails for this item alone.
    run.ended = (async () => {
      // Or by `resume`, in the meantime.
      if (await claim()) isClaimed(run);
      if (!run.claimed) return;
      await options.ready();
      await runUntilDone(item, run, async () => work(acceptedWork(item, received.contract, options)));
    })()
      .catch((err: unknown) => logger.error({ ...named(item, err), err }, 'work could not be claimed'))
      .finally(() => running.delete(item.id));
  }

  function isClaimed(run: Run): void {
    run.claimed = true;
    run.term = lease.term;
  }

  async function runUntilDone(item: WorkItem, run: Run, work: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        if (tries > 1 && !(await isStillOpen(item))) return;
        faultPoint('R5.before_work');
        return await work();
      } catch (err) {
        // Not the handler's fault, and over as soon as the peers have been heard.
        const isEarly = isHoldfastError(err) && err.code === 'peers_unanswered';
        if (isEarly) tries -= 1;
        const waitMs = options.retryDelaysMs[isEarly ? 0 : tries - 1];
        const fields = { ...named(item, err), tries, err };
        if (waitMs === undefined) {
          parked.add(item.id);
          logger.error(fields, 'work parked; its item stays open until a person acts or this process ends');
          return;
        }
        logger.error(fields, 'work stopped; its item stays open and is tried again');
        // A signal of its own: many may wait at the same time.
        await pauseAbout(waitMs, AbortSignal.any([stopping.signal]));
        if (stopping.signal.aborted || run.term.aborted) return;
      }
    }
  }

  async function isStillOpen({ ref, id }: WorkItem): Promise<boolean> {
    return (await ledger.getWork(ref.tenant, id))?.state === 'open';
  }

  return {
    start: (item) => begin(item, () => lease.claimWorkItem(item)),
    async resume(tenant) {
      if (!options.works() || stopping.signal.aborted) return 0;
      const items = await lease.claimWork(tenant, Math.max(0, MAX_RESUMED - running.size));
      for (const item of items) {
        const run = running.get(item.id);
        if (run === undefined) begin(item, async () => true);
        else isClaimed(run);
      }
      return items.length;
    },
    async stop() {
      stopping.abort();
      await Promise.all([...running.values()].map(({ ended }) => ended));
    },
  };
}

function named({ id, ref }: WorkItem, error: unknown) {
  return { work: id, case: ref.caseId, code: isHoldfastError(error) ? error.code : 'internal' };
}

function acceptedWork(item: WorkItem, contract: Contract, options: WorkerOptions): AcceptedWork {
  const { ledger, self } = options;
  const write = { ref: item.ref, writer: self, epoch: item.epoch };
  const envelope = readStoredEnvelope(item.envelope, options.envelopes);
  const settle = async (state: 'done' | 'failed', result: unknown) => {
    const stored = await storedResult(state, result, contract);
    faultPoint('R6.before_commit');
    const settled = await ledger.settleWork({ ...write, workId: item.id, state, result: stored });
    faultPoint('R6.after_commit');
    return settled;
  };
  return {
    item,
    ref: item.ref,
    epoch: item.epoch,
    envelope,
    evidence: envelope.references.map((reference) =>
      verifiedEvidence(
        {
          artifactId: reference.artifact_id,
          version: reference.version,
          sha256: reference.sha256,
          bytes: reference.bytes,
          mediaType: reference.media_type,
          filename: reference.filename,
        },
        options.store,
      ),
    ),
    async clarifications() {
      const pending = await ledger.getPending(item.key);
      return pending === null ? [] : clarificationsOf(pending, { contract, handler: {} });
    },
    note: async (text) => {
      checkArguments('note', { ...write, text });
      return ledger.addNote({ ...write, text });
    },
    effect: <T>(input: Omit<EffectInput<T>, 'ref' | 'epoch'>) =>
      runEffect(ledger, self, { ...input, ref: item.ref, epoch: item.epoch }),
    done: (result) => settle('done', result),
    fail: (result) => settle('failed', result),
  };
}
