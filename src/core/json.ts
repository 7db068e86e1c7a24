import { createHash } from 'node:crypto';

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

/** A JSON object, and neither `null` nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Stands between quotes as it is. */
const PLAIN = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

/** RFC 8785 canonical JSON. 3.0 and 3 are the same bytes. @throws TypeError on what JSON cannot hold, half a surrogate pair included */
export function canonical(value: unknown): string {
  return written(value, []);
}

function written(value: unknown, within: object[]): string {
  if (typeof value === 'string') return quoted(value);
  // Numbers are written as ECMAScript does, which is what the RFC asks for.
  if (value === null || typeof value === 'boolean' || Number.isFinite(value)) return String(value);
  if (typeof value !== 'object' || within.includes(value)) throw new TypeError('not a JSON value');
  if ('toJSON' in value && typeof value.toJSON === 'function') return written(value.toJSON(), within);
  within.push(value);
  const text = Array.isArray(value) ? items(value, within) : members(value as JsonObject, within);
  within.pop();
  return text;
}

function items(values: readonly unknown[], within: object[]): string {
  let text = '';
  for (const value of values) text += `${text === '' ? '' : ','}${written(value ?? null, within)}`;
  return `[${text}]`;
}

function members(object: JsonObject, within: object[]): string {
  let text = '';
  for (const key of Object.keys(object).sort()) {
    const value = object[key];
    if (value !== undefined) text += `${text === '' ? '' : ','}${quoted(key)}:${written(value, within)}`;
  }
  return `{${text}}`;
}

function quoted(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  if (/\p{Surrogate}/u.test(text)) throw new TypeError('not a JSON value');
  return JSON.stringify(text);
}

/** Lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

/** SHA-256 over the canonical JSON: what receipts, decisions and audit entries quote. */
export function digestOf(value: unknown): string {
  return sha256Hex(canonical(value));
}
