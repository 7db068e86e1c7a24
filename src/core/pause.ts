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
