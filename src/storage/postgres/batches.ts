import { setImmediate } from 'node:timers/promises';
import { HoldfastError } from '../../core/index.js';

export interface BatchOptions {
  /** Most batches on their way at once. */
  readonly lanes: number;
  /** Most items of one batch. */
  readonly most: number;
  /** Most items that wait; the next is `busy` at once. */
  readonly waiting: number;
}

/**
 * Sends together what waits at the same moment: an item goes with the next batch as soon as a lane is free, and no item waits for
 * others to come.
 */
export function batcher<In, Out>(
  { lanes, most, waiting }: BatchOptions,
  send: (items: readonly In[]) => Promise<readonly Out[]>,
): (item: In) => Promise<Out> {
  const queue: { item: In; resolve: (out: Out) => void; reject: (error: unknown) => void }[] = [];
  let free = lanes;

  const run = async (): Promise<void> => {
    // What the same turn of the event loop asks for goes along.
    await setImmediate();
    while (queue.length > 0) {
      const batch = queue.splice(0, most);
      try {
        const results = await send(batch.map(({ item }) => item));
        for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Out);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    free += 1;
  };

  return (item) =>
    new Promise<Out>((resolve, reject) => {
      if (queue.length >= waiting) {
        reject(new HoldfastError('busy'));
        return;
      }
      queue.push({ item, resolve, reject });
      if (free > 0) {
        free -= 1;
        void run();
      }
    });
}
