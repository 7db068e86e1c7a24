import { type Clock, HoldfastError, systemClock, toUtc } from '../../core/index.js';
import { judge, type LedgerStore } from '../../ledger/index.js';
import { answer, carryOut, type Engine, readsOf } from '../engine.js';
import { createStore } from '../store.js';
import { queriesOf } from './queries.js';
import { append, copyOf, emptyState, handlersOf, type State } from './state.js';

/** What a memory ledger stands on, so that a test can put a copy of it back as a disk is put back. */
export class MemoryDisk {
  readonly state: State;

  constructor(state: State = emptyState()) {
    this.state = state;
  }

  copy(): MemoryDisk {
    return new MemoryDisk(copyOf(this.state));
  }
}

/** A ledger in this process's memory, by the same rules: the model for tests. Nothing of it survives but on its disk. */
export function createMemoryLedger(
  options: { readonly clock?: Clock; readonly disk?: MemoryDisk } = {},
): LedgerStore {
  const { clock = systemClock, disk = new MemoryDisk() } = options;
  const { state } = disk;
  const handlers = handlersOf(state);
  let closed = false;

  const assertOpen = (): void => {
    if (closed) throw new HoldfastError('ledger_unavailable');
  };

  const engine: Engine = {
    async write(name, command) {
      assertOpen();
      const view = queriesOf(state, clock.now());
      const ruling = judge(view, name, command);
      state.journal.begin();
      try {
        for (const change of ruling.changes) carryOut(handlers, change);
        if (ruling.audit !== null) append(state, ruling.audit, toUtc(view.now));
      } catch (error) {
        state.journal.rollback();
        throw error;
      }
      if ('refusal' in ruling) throw ruling.refusal;
      return ruling.result;
    },
    async read(name, ...args) {
      assertOpen();
      return answer(readsOf(queriesOf(state, clock.now())), name, args);
    },
    async close() {
      closed = true;
    },
  };
  return createStore(engine);
}
