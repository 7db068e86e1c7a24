import { setImmediate } from 'node:timers/promises';
import { HoldfastError } from '../../core/index.js';
import { isBusy } from './errors.js';

const cell = new Int32Array(new SharedArrayBuffer(4));

/**
 * Tries again while another connection has the lock, until `deadline` (of `performance.now()`). SQLite's own busy handler backs
 * off ever further and starves; a short jittered wait does not. The wait blocks for less than a millisecond, because timers are
 * coarser than that, and lets the event loop turn in between.
 * @throws busy
 */
export async function whileBusy<T>(attempt: () => T, deadline: number): Promise<T> {
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() >= deadline) throw new HoldfastError('busy', undefined, { cause: error });
    }
    Atomics.wait(cell, 0, 0, 0.2 + Math.random() * 0.6);
    await setImmediate();
  }
}
