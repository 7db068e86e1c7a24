import { z } from 'zod';
import { meaningOf } from './config-keys.js';
import { configSchema } from './config-schema.js';

/** One key of the configuration, as `config explain` and the reference page show it. */
export interface ConfigKey {
  /** `listen.port`, `peers[].url`, `kinds.<name>.mode` */
  readonly path: string;
  readonly type: string;
  /** As written in YAML; `null` where the key must be given. */
  readonly default: string | null;
  readonly meaning: string;
}

/** Every key, in the order of the schema. */
export function listConfigKeys(): ConfigKey[] {
  return keysUnder(configSchema, '');
}

/** Names that may stand directly at `path`, or `null` where any may. */
export function knownKeysAt(path: readonly PropertyKey[]): string[] | null {
  let schema: z.ZodType = configSchema;
  for (const step of path) {
    const inner = unwrap(schema);
    if (inner instanceof z.ZodObject) schema = inner.shape[String(step)] as z.ZodType;
    else if (inner instanceof z.ZodArray) schema = inner.element as z.ZodType;
    else if (inner instanceof z.ZodRecord) schema = inner.valueType as z.ZodType;
    else return null;
  }
  const inner = unwrap(schema);
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : null;
}

function keysUnder(schema: z.ZodType, path: string): ConfigKey[] {
  const told = meaningOf(schema);
  if (told) return [{ path, type: told.type, default: told.default ?? null, meaning: told.meaning }];
  const inner = unwrap(schema);
  if (inner instanceof z.ZodArray) return keysUnder(inner.element as z.ZodType, `${path}[]`);
  if (inner instanceof z.ZodRecord) return keysUnder(inner.valueType as z.ZodType, `${path}.<name>`);
  if (!(inner instanceof z.ZodObject)) throw new TypeError(`the configuration key ${path} is not explained`);
  return Object.entries(inner.shape).flatMap(([name, value]) =>
    keysUnder(value as z.ZodType, path === '' ? name : `${path}.${name}`),
  );
}

function unwrap(schema: z.ZodType): z.ZodType {
  return schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional
    ? unwrap(schema.unwrap() as z.ZodType)
    : schema;
}
