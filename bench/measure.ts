/** Every measurement ends at the first of the two. */
export interface Bounds {
  readonly maxCount: number;
  readonly maxMs: number;
}

export interface Rate {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly count: number;
  /** Processor time of the measured process for each, milliseconds; only where the system tells. */
  readonly cpuMs?: number;
}

/**
 * Keeps `inFlight` calls of `work` going; each call gets its number and its lane (0 to `inFlight` - 1). What is still under way when
 * the time is up is waited for, and counts.
 */
export async function drive(
  inFlight: number,
  { maxCount, maxMs }: Bounds,
  work: (index: number, lane: number) => Promise<unknown>,
): Promise<Rate> {
  const took = new Float64Array(maxCount);
  let next = 0;
  let done = 0;
  const begun = performance.now();
  const lanes = Array.from({ length: inFlight }, async (_, lane) => {
    while (next < maxCount && performance.now() - begun < maxMs) {
      const index = next++;
      const from = performance.now();
      await work(index, lane);
      took[done++] = performance.now() - from;
    }
  });
  await Promise.all(lanes);
  return rateOf(took.subarray(0, done), performance.now() - begun);
}

export function rateOf(tookMs: Float64Array, ms: number): Rate {
  const sorted = tookMs.slice().sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return {
    perSecond: (sorted.length / ms) * 1000,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    count: sorted.length,
  };
}
