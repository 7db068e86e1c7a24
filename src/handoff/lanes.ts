/**
 * Runs what shares a key one after the other, and what does not at the same time. Identical offers that arrive together so wait
 * for the first one's decision; other processes are held apart by the ledger, not by this.
 */
export class Lanes {
  readonly #tails = new Map<string, Promise<unknown>>();

  /** Whether anything runs, or waits to. */
  has(key: string): boolean {
    return this.#tails.has(key);
  }

  async run<T>(key: string, action: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const turn = before.then(action, action);
    this.#tails.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#tails.get(key) === turn) this.#tails.delete(key);
    }
  }
}
