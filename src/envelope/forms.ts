import * as z from 'zod';
import {
  AGENT_URL_PATTERN,
  AMOUNT_PATTERN,
  CASE_ID_PATTERN,
  CODE_PATTERN,
  CONTRACT_ID_PATTERN,
  CURRENCY_PATTERN,
  HANDOFF_ID_PATTERN,
  MEDIA_TYPE_PATTERN,
  NAME_PATTERN,
  OPERATION_PATTERN,
  PERSON_ID_PATTERN,
  SHA256_PATTERN,
  SKILL_PATTERN,
  UTC_PATTERN,
} from '../core/index.js';

/**
 * The forms that documents are made of. Patterns only, no refinements: a refinement would silently be missing from the JSON
 * Schema, and lengths count characters (code points) as JSON Schema does, not UTF-16 units.
 */

/** Visible text with tabs and line breaks; no other control characters, which terminals and databases act on. */
export function text(max: number) {
  const pattern = new RegExp(
    `^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]{1,${max}}$`,
    'u',
  );
  return z.string().regex(pattern, `must be 1 to ${max} characters without control characters`);
}

const pattern = (regex: RegExp, problem: string) => z.string().regex(regex, problem);

export const agentUrl = pattern(
  AGENT_URL_PATTERN,
  'must be an http(s) URL in lower case without credentials, query, fragment or trailing slash',
);
/** An agent, or a person of one. */
export const owner = pattern(
  new RegExp(`^(?:person:${PERSON_ID_PATTERN.source.slice(1, -1)}@)?${AGENT_URL_PATTERN.source.slice(1)}`),
  'must be the URL of an agent, or person:ID@URL',
);
export const url = pattern(
  /^https?:\/\/[!-~]{1,2000}$/,
  'must be an http(s) URL of at most 2,000 characters',
);
export const utc = pattern(UTC_PATTERN, 'must be a UTC time such as 2026-01-31T10:00:00Z');
export const sha256 = pattern(SHA256_PATTERN, 'must be a SHA-256 in lower-case hex');
export const caseId = pattern(CASE_ID_PATTERN, 'must be a case id: letters, digits, dot, dash, underscore');
export const kind = pattern(NAME_PATTERN, 'must be the name of a kind');
export const handoffId = pattern(HANDOFF_ID_PATTERN, 'must be case_id:epoch+1');
export const nameVersion = pattern(CONTRACT_ID_PATTERN, 'must be name/version');
export const skill = pattern(SKILL_PATTERN, 'must be the id of a skill');
export const operation = pattern(
  OPERATION_PATTERN,
  'must be the name of an operation, such as refund or publish',
);
const factKey = pattern(
  /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/,
  'must start with a letter and hold letters, digits, _ . -',
);
export const opaqueId = pattern(
  /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/,
  'must be an id of 1 to 128 characters',
);
export const mediaType = pattern(MEDIA_TYPE_PATTERN, 'must be a media type in lower case without parameters');
export const filename = pattern(
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  /^[^\u0000-\u001f\u007f-\u009f/\\:*?"<>|\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]{1,120}$/u,
  'must be a plain file name of at most 120 characters',
);
export const traceparent = pattern(
  /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/,
  'must be a W3C traceparent',
);
export const compactJws = pattern(
  /^(?=[\s\S]{1,8000}$)[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/,
  'must be a compact JWS',
);
export const code = pattern(CODE_PATTERN, 'must be a code in snake_case');

export const positive = z.int().min(1);
/** One less than the largest exact integer, so that the next epoch is exact too. */
export const epoch = z
  .int()
  .min(1)
  .max(Number.MAX_SAFE_INTEGER - 1);

export const money = z.strictObject({
  amount: pattern(AMOUNT_PATTERN, 'must be a decimal string such as "49.00"'),
  currency: pattern(CURRENCY_PATTERN, 'must be an ISO 4217 code'),
});

export const textList = z.array(text(200)).max(50);

export const fact = z.strictObject({
  key: factKey,
  value: z.json(),
  source: text(100),
  verified: z.boolean(),
  observed_at: utc.exactOptional(),
});

export const constraints = z.strictObject({
  deadline: utc.exactOptional(),
  caps: z.record(operation, money),
  prohibitions: z.array(operation).max(50),
});

export const artifactPointer = z.strictObject({ id: opaqueId, version: positive, digest: sha256 });
