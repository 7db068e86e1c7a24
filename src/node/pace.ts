/** How fast a process says that it lives, looks for what is left to do, and tries again; milliseconds. */
export interface Pace {
  /** How long a process counts as living after it last said so. */
  readonly leaseMs: number;
  readonly beatMs: number;
  /** Between two looks at what nobody who lives works on. */
  readonly sweepMs: number;
  /** How long a caller waits for the outcome of what another process of the agent was quicker to take up. */
  readonly elsewhereMs: number;
  /** Waits before an open offer is sent again in the background: from, growing, to. */
  readonly offerBackoffMs: readonly [first: number, last: number];
  /** Waits before a handler that threw is run again; then its item is parked. */
  readonly workRetriesMs: readonly number[];
  /** Waits after a notification was not delivered, growing; then the last of them. */
  readonly pushBackoffMs: readonly number[];
}

export const DEFAULT_PACE: Pace = {
  leaseMs: 15_000,
  beatMs: 5_000,
  sweepMs: 1_500,
  elsewhereMs: 10_000,
  offerBackoffMs: [500, 30_000],
  workRetriesMs: [1_000, 5_000, 30_000, 120_000],
  pushBackoffMs: [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400].map((seconds) => seconds * 1_000),
};

/** Between the tries of a caller who waits for the outcome, milliseconds. */
export const CALLER_RETRIES_MS = [200, 1_000];
