/** Where "now" comes from; tests pass their own. */
export interface Clock {
  /** The present time. */
  now(): Date;
}

export const systemClock: Clock = { now: () => new Date() };

/** `2026-01-31T10:00:00.000Z`: UTC, milliseconds, always with Z. */
export function toUtc(date: Date): string {
  return date.toISOString();
}
