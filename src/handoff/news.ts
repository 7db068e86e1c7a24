import { pause } from '../core/index.js';

/** Tells those who wait in this process that a task has changed; of other processes only the ledger knows. */
export class News {
  readonly #waiting = new Map<string, Set<AbortController>>();

  tell(taskId: string): void {
    for (const wait of this.#waiting.get(taskId) ?? []) wait.abort();
  }

  /** Resolves when the task is said to have changed, and after `ms` in any case. */
  async heard(taskId: string, ms: number): Promise<void> {
    const wait = new AbortController();
    const all = this.#waiting.get(taskId) ?? new Set();
    this.#waiting.set(taskId, all.add(wait));
    try {
      await pause(ms, wait.signal);
    } finally {
      all.delete(wait);
      if (all.size === 0) this.#waiting.delete(taskId);
    }
  }
}
