import { createHash } from 'node:crypto';
import canonicalizeJson from 'canonicalize';

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

/** A JSON object, and neither `null` nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** RFC 8785 canonical JSON. 3.0 and 3 are the same bytes. @throws TypeError on what JSON cannot hold */
export function canonical(value: unknown): string {
  const text = canonicalizeJson(value);
  if (text === undefined) throw new TypeError('not a JSON value');
  return text;
}

/** Lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

/** SHA-256 over the canonical JSON: what receipts, decisions and audit entries quote. */
export function digestOf(value: unknown): string {
  return sha256Hex(canonical(value));
}
