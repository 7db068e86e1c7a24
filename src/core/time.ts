/** `2026-01-31T10:00:00Z` or with milliseconds: UTC only, so that two spellings of an instant do not look like two. */
export const UTC_PATTERN =
  /^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{3})?Z$/;

/** The instant, or null where the text has another form or names a day that does not exist. */
export function parseUtc(text: string): Date | null {
  if (!UTC_PATTERN.test(text)) return null;
  const date = new Date(text);
  // Date turns 30 February into 2 March instead of refusing it.
  return date.toISOString().startsWith(text.slice(0, 19)) ? date : null;
}

/** Whether an instant lies less than `limitMs` back; not where the clock was set back to before it, since then nobody knows. */
export function isWithin(limitMs: number, sinceMs: number, nowMs: number): boolean {
  return nowMs >= sinceMs && nowMs - sinceMs < limitMs;
}
