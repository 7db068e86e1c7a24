/*
 * Text in PostgreSQL holds neither U+0000 nor half a surrogate pair. The other storages keep the first and replace the second; so that
 * a text means the same in each of them, U+0000 is kept as U+0001 and a digit, and U+0001 too.
 */

/** A text as a parameter. */
export function encodeText(text: string): string {
  return text.replaceAll('\u0001', '\u00011').replaceAll('\0', '\u00010');
}

/** A text as it was before it was a parameter. */
export function decodeText(text: string): string {
  return text.replaceAll('\u00010', '\0').replaceAll('\u00011', '\u0001');
}

/** A value as JSON whose strings are encoded texts. */
export function encodeJson(value: unknown): string {
  const json = JSON.stringify(value);
  if (!/\\u(?:000[01]|d)/.test(json)) return json;
  return json.replace(/\\(?:u000([01])|(ud[89a-f][0-9a-f]{2})|[\s\S])/g, (found, digit, half) =>
    half !== undefined ? '\\ufffd' : digit !== undefined ? `\\u0001${digit}` : found,
  );
}

export function decodeJson(json: string): unknown {
  if (!json.includes('\\u0001')) return JSON.parse(json);
  return JSON.parse(json, (_, value) => (typeof value === 'string' ? decodeText(value) : value));
}
