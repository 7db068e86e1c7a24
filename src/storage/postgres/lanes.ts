import { HoldfastError } from '../../core/index.js';

/** Lets writes to one case go one after another, so that a process does not race itself. */
export class Lanes {
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #most: number;
  #waiting = 0;

  /** `most`: that may wait in all; the next is `busy`. */
  constructor(most: number) {
    this.#most = most;
  }

  async run<T>(lane: string | undefined, work: () => Promise<T>): Promise<T> {
    const before = lane === undefined ? undefined : this.#last.get(lane);
    if (lane === undefined) return work();
    if (before !== undefined && this.#waiting >= this.#most) throw new HoldfastError('busy');
    this.#waiting += 1;
    const turn = before === undefined ? work() : before.then(work);
    const done = turn.catch(() => undefined).finally(() => (this.#waiting -= 1));
    this.#last.set(lane, done);
    try {
      return await turn;
    } finally {
      if (this.#last.get(lane) === done) this.#last.delete(lane);
    }
  }

  /** Once all that was begun has ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
