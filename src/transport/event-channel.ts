import { HoldfastError } from '../core/index.js';

/** Events that wait for a reader; each may hold a whole task. */
const MAX_WAITING = 1_000;

/** A queue with one reader, that ends when its writer closes it or its reader's request is over. */
export class EventChannel<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  readonly #onEnd: (channel: EventChannel<T>) => void;
  #wake: (() => void) | null = null;
  #closed = false;
  #error: unknown;

  constructor(onEnd: (channel: EventChannel<T>) => void) {
    this.#onEnd = onEnd;
  }

  push(item: T): void {
    if (this.#closed) return;
    // The reader learns that it missed something; what became of the task can be asked for.
    if (this.#items.length >= MAX_WAITING) {
      this.close(new HoldfastError('busy', 'The stream is read too slowly.'));
      return;
    }
    this.#items.push(item);
    this.#wake?.();
  }

  /** What is queued is still read; then the reader's loop ends, or throws the error. */
  close(error?: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#error = error;
    this.#onEnd(this);
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    try {
      for (;;) {
        const next = this.#items.shift();
        if (next !== undefined) yield next;
        else if (this.#closed) break;
        else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
      if (this.#error !== undefined) throw this.#error;
    } finally {
      this.close();
    }
  }
}

/** The events for as long as the client is there. */
export async function* whileHeard<T>(
  events: EventChannel<T>,
  signal: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  const leave = () => events.close();
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  try {
    yield* events;
  } finally {
    signal.removeEventListener('abort', leave);
  }
}
