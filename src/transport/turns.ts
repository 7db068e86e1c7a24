import { HoldfastError } from '../core/index.js';

/** One turn at a time for each task: a second message waits for the first to be dealt with, but not for ever. */
export class Turns {
  readonly #held = new Map<string, Promise<void>>();

  constructor(readonly waitMs: number) {}

  /** Gives the turn, with the function that ends it. @throws task_conflict when the wait was in vain */
  async take(key: string): Promise<() => void> {
    const until = Date.now() + this.waitMs;
    for (let held = this.#held.get(key); held !== undefined; held = this.#held.get(key)) {
      const left = until - Date.now();
      if (left <= 0 || !(await settlesWithin(held, left))) {
        throw new HoldfastError('task_conflict', 'The task is busy with an earlier message.');
      }
    }
    let release: () => void = () => undefined;
    this.#held.set(
      key,
      new Promise((resolve) => {
        release = resolve;
      }),
    );
    return () => {
      this.#held.delete(key);
      release();
    };
  }
}

async function settlesWithin(work: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([work.then(() => true), limit]);
  } finally {
    clearTimeout(timer);
  }
}
