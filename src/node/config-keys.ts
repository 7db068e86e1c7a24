import { z } from 'zod';
import { formatDuration, formatSize, parseDuration, parseSize } from './units.js';

/** The sorts of keys a configuration has; each takes its sentence where it is made, so that none goes without. */

/** What a person is told about one key. `default` is as it is written in YAML; absent where the key must be given. */
export interface KeyMeaning {
  readonly type: string;
  readonly meaning: string;
  readonly default?: string;
}

const meanings = z.registry<KeyMeaning>();

function explained<T extends z.ZodType>(schema: T, meaning: KeyMeaning): T {
  meanings.add(schema as z.ZodType, meaning);
  return schema;
}

export function key<T extends z.ZodType>(schema: T, type: string, meaning: string): T {
  return explained(schema.clone() as T, { type, meaning });
}

/** A key that may be left out; `fallback` is its default as it would stand in the file. */
export function optional<T extends z.ZodType>(
  schema: T,
  type: string,
  fallback: z.input<T>,
  meaning: string,
) {
  const shown = typeof fallback === 'string' ? fallback : JSON.stringify(fallback);
  return explained(schema.prefault(fallback as never), { type, meaning, default: shown });
}

/** A key that may be left out and then means what its sentence says. */
export function absent<T extends z.ZodType>(schema: T, type: string, meaning: string) {
  return explained(schema.optional(), { type, meaning, default: 'none' });
}

/** A section that may be left out; its keys then have their own defaults. */
export function section<T extends z.ZodRawShape>(shape: T) {
  const inner = z.strictObject(shape);
  return inner.prefault({} as z.input<typeof inner>);
}

export function duration(fallbackMs: number, range: { minMs: number; maxMs: number }, meaning: string) {
  const { minMs, maxMs } = range;
  const between = `between ${formatDuration(minMs)} and ${formatDuration(maxMs)}`;
  const schema = z
    .string({ error: 'must be a duration with its unit, such as 30s, 5m or 24h' })
    .transform((text, context) => {
      const ms = parseDuration(text);
      if (ms !== null && ms >= minMs && ms <= maxMs) return ms;
      context.addIssue({ code: 'custom', message: `must be a duration ${between}, such as 30s, 5m or 24h` });
      return z.NEVER;
    });
  return optional(schema, 'duration', formatDuration(fallbackMs), `${meaning} ${capitalize(between)}.`);
}

export function size(fallback: number, maxBytes: number, meaning: string) {
  const schema = z
    .string({ error: 'must be a size with its unit, such as 64KiB or 1MiB' })
    .transform((text, context) => {
      const bytes = parseSize(text);
      if (bytes !== null && bytes >= 1 && bytes <= maxBytes) return bytes;
      context.addIssue({
        code: 'custom',
        message: `must be a size up to ${formatSize(maxBytes)}, such as 64KiB or 1MiB`,
      });
      return z.NEVER;
    });
  return optional(schema, 'size', formatSize(fallback), `${meaning} At most ${formatSize(maxBytes)}.`);
}

export function count(fallback: number, range: { min: number; max: number }, meaning: string) {
  const { min, max } = range;
  const error = `must be a whole number from ${min} to ${max}`;
  const schema = z.int({ error }).min(min, { error }).max(max, { error });
  return optional(schema, 'integer', fallback, `${meaning} From ${min} to ${max}.`);
}

const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
export const text = (pattern: RegExp, error: string) => z.string({ error }).regex(pattern, { error });

/** What is said about a key; a section has none of its own. */
export function meaningOf(schema: z.ZodType): KeyMeaning | undefined {
  return meanings.get(schema);
}
