import { setImmediate } from 'node:timers/promises';
import type Database from 'better-sqlite3';
import { type Clock, HoldfastError, systemClock } from '../../core/index.js';
import { type CommandOf, type Judge, judge, type ResultOf, type RuleName } from '../../ledger/index.js';
import { answer, type Engine, type LedgerReads, type ReadName } from '../engine.js';
import { Checkpoints, type OnWarning } from './checkpoints.js';
import { isFatal, toHoldfastError } from './errors.js';
import { LedgerFile } from './ledger-file.js';
import { whileBusy } from './lock.js';
import { type End, isWritten, type Judged, type Request } from './transaction.js';
import { WriterThread } from './writer.js';

export interface SqliteEngineOptions {
  readonly clock: Clock;
  readonly lockWaitMs: number;
  readonly maxWaiting: number;
  readonly onWarning: OnWarning;
  /** Bound of the writer thread's heap, MiB. */
  readonly writerHeapMb?: number;
  /** For tests: judges on the main thread only. */
  readonly judge?: Judge;
}

/** So that no one transaction keeps other processes from the lock, or its callers from their answers, for long. */
const MAX_BATCH = 256;

interface Waiting extends Request {
  /** Of `performance.now()`. */
  readonly deadline: number;
  readonly resolve: (result: never) => void;
  readonly reject: (error: HoldfastError) => void;
}

/**
 * Commits whatever commands wait at the same moment as one transaction: on this thread where it is a single one, on the writer thread
 * where there are more. At any moment only one of the two writes, so that this process competes with others as one. A transaction
 * whose outcome is not known is looked up in a file that was opened, and its log written, anew.
 */
export function sqliteEngine(db: Database.Database, options: SqliteEngineOptions): Engine {
  const { clock, lockWaitMs, maxWaiting, onWarning, writerHeapMb = 256 } = options;
  const file = new LedgerFile(db, options.judge ?? judge, lockWaitMs);
  const thread = new WriterThread({ place: file.place, lockWaitMs }, writerHeapMb, (err) =>
    onWarning({ err }, 'the writer thread of the ledger ended'),
  );
  const checkpoints = new Checkpoints(file, thread, onWarning);
  const shares = options.judge === undefined;
  const waiting: Waiting[] = [];
  let working: Promise<void> | null = null;
  let closed = false;

  const commitHere = async (batch: readonly Waiting[], deadline: number): Promise<End> => {
    try {
      await file.ready();
      return await whileBusy(() => file.use().run(batch, () => clock.now()), deadline);
    } catch (error) {
      return { end: 'undone', error: toHoldfastError(error), fatal: isFatal(error) };
    }
  };

  const commitThere = async (batch: readonly Waiting[], deadline: number): Promise<End> => {
    const now = clock === systemClock ? null : clock.now().getTime();
    try {
      return await thread.run(batch, now, deadline - performance.now());
    } catch {
      // A command that cannot be carried to another thread can still be judged here.
      return commitHere(batch, deadline);
    }
  };

  /** Whether the transaction is in the ledger after all; `null` where that cannot be found out now. */
  const readBack = async (judged: Judged): Promise<boolean | null> => {
    try {
      await file.ready();
      const { witness } = judged;
      return witness === null || file.use().read(clock.now(), (reads) => isWritten(reads, witness));
    } catch (err) {
      onWarning({ err }, 'the ledger cannot be opened again; the outcome of its last commands is not known');
      return null;
    }
  };

  /** What became of each command of a batch that committed. @throws what all of it failed with */
  const outcomesOf = async (end: End): Promise<Judged['outcomes']> => {
    if (end.end === 'committed') return end.judged.outcomes;
    if (end.end === 'unknown' || end.fatal) {
      onWarning({ err: end.error }, 'the ledger is opened again after an error of its file');
      file.distrust();
      await thread.stop();
    }
    if (end.end === 'undone') throw end.error;
    const written = await readBack(end.judged);
    if (written === true) return end.judged.outcomes;
    const code = written === null ? 'outcome_unknown' : 'ledger_unavailable';
    throw new HoldfastError(code, undefined, { cause: end.error });
  };

  const commit = async (batch: readonly Waiting[]): Promise<void> => {
    const deadline = Math.min(...batch.map((one) => one.deadline));
    if (batch.length > 1 && shares) thread.start();
    const there = batch.length > 1 && thread.ready;
    try {
      const outcomes = await outcomesOf(await (there ? commitThere : commitHere)(batch, deadline));
      for (const [index, { resolve, reject }] of batch.entries()) {
        const outcome = outcomes[index] ?? { error: new HoldfastError('internal') };
        if ('error' in outcome) reject(outcome.error);
        else resolve(outcome.result as never);
      }
      await checkpoints.after(batch.length);
    } catch (error) {
      for (const { reject } of batch) reject(toHoldfastError(error));
    }
  };

  const work = async (): Promise<void> => {
    while (waiting.length > 0) {
      // Whatever else this turn of the event loop brings waits as well; only the thread may begin without it.
      if (waiting.length === 1 || !thread.ready) await setImmediate();
      await commit(waiting.splice(0, MAX_BATCH));
    }
    working = null;
  };

  return {
    write<N extends RuleName>(name: N, command: CommandOf<N>): Promise<ResultOf<N>> {
      return new Promise((resolve, reject) => {
        if (closed) return reject(new HoldfastError('ledger_unavailable'));
        if (waiting.length >= maxWaiting) return reject(new HoldfastError('busy'));
        waiting.push({ name, command, deadline: performance.now() + lockWaitMs, resolve, reject });
        working ??= work();
      });
    },
    async read<Q extends ReadName>(name: Q, ...args: Parameters<LedgerReads[Q]>) {
      try {
        await file.ready();
        const question = (reads: LedgerReads) => answer(reads, name, args);
        return await whileBusy(() => file.use().read(clock.now(), question), performance.now() + lockWaitMs);
      } catch (error) {
        if (isFatal(error)) file.distrust();
        throw toHoldfastError(error);
      }
    },
    async close(): Promise<void> {
      closed = true;
      await working;
      await thread.stop();
      await file.close();
    },
  };
}
