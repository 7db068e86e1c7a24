/** Durations and sizes as people write them: `30s`, `24h`, `64KiB`. A bare number says nothing about its unit and is refused. */

const DURATION_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const SIZE_BYTES = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const;

/** Milliseconds, or `null` where the text is no duration. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  return match ? Number(match[1]) * DURATION_MS[match[2] as keyof typeof DURATION_MS] : null;
}

/** Bytes, or `null` where the text is no size. */
export function parseSize(text: string): number | null {
  const match = /^(\d{1,9})(B|KiB|MiB|GiB)$/.exec(text);
  return match ? Number(match[1]) * SIZE_BYTES[match[2] as keyof typeof SIZE_BYTES] : null;
}

/** The shortest exact spelling, in the largest unit that divides it. */
export function formatDuration(ms: number): string {
  // A day is written 24h, as most people do.
  return ms === DURATION_MS.d ? '24h' : formatIn(DURATION_MS, ms);
}

export function formatSize(bytes: number): string {
  return formatIn(SIZE_BYTES, bytes);
}

function formatIn(units: Readonly<Record<string, number>>, value: number): string {
  const [unit, factor] = Object.entries(units).findLast(
    ([, size]) => value >= size && value % size === 0,
  ) ?? ['', 1];
  return `${value / factor}${unit}`;
}
