import type { Contract } from '../contract/index.js';
import { isHoldfastError, type Logger } from '../core/index.js';
import { type EnvelopeRegistry, readStoredEnvelope } from '../envelope/index.js';
import type { EvidenceStore } from '../evidence/index.js';
import { faultPoint } from '../faults/index.js';
import type { LedgerStore, WorkItem } from '../ledger/index.js';
import { checkArguments } from './arguments.js';
import { runEffect } from './effects.js';
import { verifiedEvidence } from './judge.js';
import type { AcceptedWork, EffectInput, ReceivedContract } from './model.js';
import { storedResult } from './result.js';

export interface WorkerOptions {
  readonly self: string;
  readonly ledger: LedgerStore;
  readonly envelopes: EnvelopeRegistry;
  readonly store: EvidenceStore;
  readonly logger: Logger;
  received(contract: string): ReceivedContract | null;
}

export interface Worker {
  /** Runs the handler's work on an accepted item in the background; items without a handler wait for a person. */
  start(item: WorkItem): void;
  /** Starts the work on every open item of this node again, after a restart. */
  resume(tenants: readonly string[]): Promise<number>;
  /** Resolves when no work is running. */
  drain(): Promise<void>;
}

/**
 * Accepted work runs at least once: a crash starts it again, and effect keys keep it from acting twice. A handler that throws leaves
 * its item open, to be seen in `work list` and tried again at the next start.
 */
export function createWorker(options: WorkerOptions): Worker {
  const running = new Map<string, Promise<void>>();

  function start(item: WorkItem): void {
    const received = options.received(item.contract);
    const work = received?.handler.work;
    if (!work || running.has(item.id)) return;
    // Whatever fails, and be it before the handler runs, fails for this item alone.
    const run = (async () => {
      faultPoint('R5.before_work');
      await work(acceptedWork(item, received.contract, options));
    })()
      .catch((err: unknown) => {
        const code = isHoldfastError(err) ? err.code : 'internal';
        options.logger.error(
          { work: item.id, case: item.ref.caseId, code, err },
          'work stopped; its item stays open',
        );
      })
      .finally(() => running.delete(item.id));
    running.set(item.id, run);
  }

  return {
    start,
    async resume(tenants) {
      let count = 0;
      for (const tenant of tenants) {
        for (const item of await options.ledger.listWork(tenant, { owner: options.self, state: 'open' })) {
          start(item);
          count++;
        }
      }
      return count;
    },
    async drain() {
      await Promise.all(running.values());
    },
  };
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
