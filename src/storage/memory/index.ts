import { type Clock, HoldfastError, systemClock, toUtc } from '../../core/index.js';
import { judge, type LedgerStore } from '../../ledger/index.js';
import { answer, carryOut, type Engine, readsOf } from '../engine.js';
import { createStore } from '../store.js';
import { queriesOf } from './queries.js';
import { append, emptyState, handlersOf } from './state.js';

/** A ledger in this process's memory, by the same rules: the model for tests. Nothing of it survives. */
export function createMemoryLedger(options: { readonly clock?: Clock } = {}): LedgerStore {
  const { clock = systemClock } = options;
  const state = emptyState();
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
