/** Resolves after `ms`, or at once when the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}

/** Between half as long and half as long again, so that those who were in each other's way are not once more. */
export function pauseAbout(ms: number, signal?: AbortSignal): Promise<void> {
  return pause(ms * (0.5 + Math.random()), signal);
}

/** What a timer can wait at most. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The work's outcome, or `late()` thrown once `limitMs` have passed; the work itself goes on, and nobody hears of it. */
export async function inTime<T>(limitMs: number, work: Promise<T>, late: () => Error): Promise<T> {
  if (limitMs > MAX_TIMER_MS) return work;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<never>((_, refuse) => {
    timer = setTimeout(() => refuse(late()), limitMs);
    timer.unref();
  });
  try {
    return await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}
