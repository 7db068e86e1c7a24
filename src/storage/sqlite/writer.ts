import { Worker } from 'node:worker_threads';
import { HoldfastError } from '../../core/index.js';
import type { Place } from './connection.js';
import { type Failure, unpackError } from './errors.js';
import type { End, Judged, Outcome, Request } from './transaction.js';
import type { WalState } from './wal.js';

/** What the thread is given at its start. */
export interface ThreadData {
  readonly place: Place;
  readonly lockWaitMs: number;
}

export type Order =
  | {
      readonly do: 'run';
      readonly batch: readonly Request[];
      /** The instant of the transaction, milliseconds; `null`: the system's time once it has the lock. */
      readonly now: number | null;
      readonly waitMs: number;
    }
  | { readonly do: 'checkpoint' };

/** Errors lose their class on the way. */
export type PackedOutcome = Exclude<Outcome, { error: unknown }> | { readonly error: Failure };

export type Report =
  | { readonly say: 'ready' }
  /** Before the commit, so that it is known what to look for should this be the thread's last word. */
  | {
      readonly say: 'judged';
      readonly outcomes: readonly PackedOutcome[];
      readonly witness: Judged['witness'];
    }
  | { readonly say: 'committed' }
  | { readonly say: 'unknown'; readonly error: Failure }
  | { readonly say: 'undone'; readonly error: Failure; readonly fatal: boolean }
  | { readonly say: 'checkpointed'; readonly wal: WalState | null };

const NOTHING_JUDGED: Judged = { outcomes: [], witness: null };

/** A thread that dies this often without a commit in between is not started any more. */
const MAX_DEATHS = 3;

/**
 * Commits batches on a connection and a thread of its own, so that nobody else waits while the disk does. It starts when it is first
 * wanted, and does not keep a process alive.
 */
export class WriterThread {
  readonly #data: ThreadData;
  readonly #heapMb: number;
  readonly #onDeath: (error: unknown) => void;
  #worker: Worker | null = null;
  #ready = false;
  #deaths = 0;
  #awaiting = 0;
  #batch: { judged: Judged; readonly resolve: (end: End) => void } | null = null;
  #checkpoint: ((wal: WalState | null) => void) | null = null;

  constructor(data: ThreadData, heapMb: number, onDeath: (error: unknown) => void) {
    this.#data = data;
    this.#heapMb = heapMb;
    this.#onDeath = onDeath;
  }

  /** Whether it can be given a batch; until then the caller commits by itself. */
  get ready(): boolean {
    return this.#ready;
  }

  start(): void {
    if (this.#worker !== null || this.#deaths >= MAX_DEATHS) return;
    const worker = startThread(this.#data, this.#heapMb);
    this.#worker = worker;
    let reason: unknown = null;
    worker.on('message', (report: Report) => this.#hear(report));
    worker.on('error', (error) => {
      reason = error;
    });
    // What the thread said before its end has been heard by now, and its connection is closed.
    worker.on('exit', () => this.#buried(worker, reason));
    // After the listeners: one for messages keeps the process alive.
    worker.unref();
  }

  /**
   * One at a time.
   * @throws DataCloneError where a command cannot be carried to another thread; nothing has happened then
   */
  async run(batch: readonly Request[], now: number | null, waitMs: number): Promise<End> {
    const worker = this.#worker;
    if (worker === null) throw new HoldfastError('internal');
    const requests = batch.map(({ name, command }) => ({ name, command }));
    worker.postMessage({ do: 'run', batch: requests, now, waitMs } satisfies Order);
    return this.#awaited(
      worker,
      new Promise<End>((resolve) => {
        this.#batch = { judged: NOTHING_JUDGED, resolve };
      }),
    );
  }

  /** `null` where it failed. */
  async checkpoint(): Promise<WalState | null> {
    const worker = this.#worker;
    if (worker === null) return null;
    worker.postMessage({ do: 'checkpoint' } satisfies Order);
    return this.#awaited(
      worker,
      new Promise((resolve) => {
        this.#checkpoint = resolve;
      }),
    );
  }

  /** While somebody waits for the thread the process must not end. */
  async #awaited<T>(worker: Worker, report: Promise<T>): Promise<T> {
    this.#awaiting += 1;
    worker.ref();
    try {
      return await report;
    } finally {
      this.#awaiting -= 1;
      if (this.#awaiting === 0) worker.unref();
    }
  }

  async stop(): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    this.#ready = false;
    this.#deaths -= 1;
    await this.#awaited(worker, worker.terminate());
  }

  #hear(report: Report): void {
    switch (report.say) {
      case 'ready':
        this.#ready = true;
        return;
      case 'judged':
        if (this.#batch !== null) {
          this.#batch.judged = { outcomes: report.outcomes.map(unpack), witness: report.witness };
        }
        return;
      case 'undone':
        this.#end(() => ({ end: 'undone', error: unpackError(report.error), fatal: report.fatal }));
        return;
      case 'unknown':
        this.#end((judged) => ({ end: 'unknown', error: unpackError(report.error), judged }));
        return;
      case 'committed':
        this.#deaths = 0;
        this.#end((judged) => ({ end: 'committed', judged }));
        return;
      case 'checkpointed':
        this.#checkpoint?.(report.wal);
        this.#checkpoint = null;
    }
  }

  #end(toEnd: (judged: Judged) => End): void {
    const batch = this.#batch;
    this.#batch = null;
    batch?.resolve(toEnd(batch.judged));
  }

  #buried(worker: Worker, reason: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    this.#ready = false;
    this.#deaths += 1;
    if (reason !== null) this.#onDeath(reason);
    const error = new HoldfastError('ledger_unavailable', undefined, { cause: reason });
    this.#end((judged) =>
      // It would have said what it judged before it committed.
      judged === NOTHING_JUDGED ? { end: 'undone', error, fatal: false } : { end: 'unknown', error, judged },
    );
    this.#checkpoint?.(null);
    this.#checkpoint = null;
  }
}

function unpack(outcome: PackedOutcome): Outcome {
  return 'error' in outcome ? { error: unpackError(outcome.error) } : outcome;
}

function startThread(workerData: ThreadData, maxOldGenerationSizeMb: number): Worker {
  const options = { workerData, resourceLimits: { maxOldGenerationSizeMb } };
  if (!import.meta.url.endsWith('.ts')) {
    return new Worker(new URL('./writer-thread.js', import.meta.url), options);
  }
  // Run from the sources, as tests do: a new thread does not inherit what makes its parent understand TypeScript.
  const { href } = new URL('./writer-thread.ts', import.meta.url);
  const load = `import('tsx/esm/api').then(({ register }) => { register(); return import('${href}'); });`;
  return new Worker(load, { ...options, eval: true });
}
