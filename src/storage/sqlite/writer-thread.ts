import { parentPort, workerData } from 'node:worker_threads';
import { judge } from '../../ledger/index.js';
import { assertInPlace, attach } from './connection.js';
import { isFatal, packError, toHoldfastError } from './errors.js';
import { whileBusy } from './lock.js';
import { tablesOf } from './tables.js';
import { type End, type Outcome, transactionsOn } from './transaction.js';
import { checkpoint, type WalState } from './wal.js';
import type { Order, PackedOutcome, Report, ThreadData } from './writer.js';

/* The other side of `WriterThread`: takes one order after the other, each to its end. */

const { place, lockWaitMs } = workerData as ThreadData;
const db = await attach(place.file, performance.now() + lockWaitMs);
const run = transactionsOn(db, tablesOf(db), judge);
let turn: Promise<void> = Promise.resolve();

parentPort?.on('message', (order: Order) => {
  turn = turn.then(async () => {
    if (order.do === 'run') say(reportOf(await commit(order)));
    else say({ say: 'checkpointed', wal: copy() });
  });
});
say({ say: 'ready' });

async function commit({ batch, now, waitMs }: Extract<Order, { do: 'run' }>): Promise<End> {
  const clock = () => (now === null ? new Date() : new Date(now));
  try {
    return await whileBusy(() => {
      assertInPlace(place);
      return run(batch, clock, ({ outcomes, witness }) =>
        say({ say: 'judged', outcomes: outcomes.map(pack), witness }),
      );
    }, performance.now() + waitMs);
  } catch (error) {
    return { end: 'undone', error: toHoldfastError(error), fatal: isFatal(error) };
  }
}

function reportOf(end: End): Report {
  switch (end.end) {
    case 'committed':
      return { say: 'committed' };
    case 'unknown':
      return { say: 'unknown', error: packError(end.error) };
    case 'undone':
      return { say: 'undone', error: packError(end.error), fatal: end.fatal };
  }
}

function pack(outcome: Outcome): PackedOutcome {
  return 'error' in outcome ? { error: packError(outcome.error) } : outcome;
}

function copy(): WalState | null {
  try {
    return checkpoint(db, 'PASSIVE');
  } catch {
    return null;
  }
}

function say(report: Report): void {
  parentPort?.postMessage(report);
}
