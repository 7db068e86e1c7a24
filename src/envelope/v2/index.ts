import * as z from 'zod';
import { type FieldError, isJsonObject, type JsonObject, type JsonValue } from '../../core/index.js';
import type { EnvelopeCodec, HandoffEnvelope } from '../model.js';
import { documentError, fieldsOf } from '../problems.js';
import { checkForm, checkInline } from './checks.js';
import { envelopeV2Schema, richV2Schema, thinV2Schema } from './schema.js';

/** A refusal of its own where nothing else is wrong, because it tells the sender what to correct. */
function codeOf(fields: readonly FieldError[]) {
  if (fields.every(({ path }) => /^facts\.\d+\.source$/.test(path))) return 'fact_unsourced';
  if (fields.every(({ path }) => /^references\.\d+\.sha256$/.test(path))) return 'evidence_hash_missing';
  return 'schema_invalid';
}

/** What a thin envelope does not have. */
const NOTHING = {
  goal: '',
  done: [],
  remaining: [],
  facts: [],
  open_questions: [],
  constraints: { caps: {}, prohibitions: [] },
  summary: { text: '', generated_from: [] },
  references: [],
  effects: [],
  provenance: [],
} as const satisfies Partial<HandoffEnvelope>;

const OF_THE_CASE = Object.keys(richV2Schema.shape).filter(
  (name) => !Object.hasOwn(thinV2Schema.shape, name),
);

function isThin(value: JsonValue): boolean {
  return isJsonObject(value) && !OF_THE_CASE.some((name) => Object.hasOwn(value, name));
}

function matching<T>(schema: z.ZodType<T>, value: JsonValue): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const fields = fieldsOf(result.error);
  throw documentError(codeOf(fields), fields);
}

function read(value: JsonValue): HandoffEnvelope {
  return isThin(value)
    ? { ...matching(thinV2Schema, value), ...NOTHING, thin: true }
    : matching(richV2Schema, value);
}

function parse(value: JsonValue): HandoffEnvelope {
  const envelope = read(value);
  const fields = checkForm(envelope);
  if (fields.length > 0) throw documentError('schema_invalid', fields);
  const inline = checkInline(envelope);
  if (inline.length > 0) throw documentError('evidence_inline', inline);
  return envelope;
}

/** The second wire version, and the first this project speaks. */
export const envelopeV2: EnvelopeCodec = {
  version: 2,
  parse,
  jsonSchema: () => z.toJSONSchema(envelopeV2Schema) as JsonObject,
};
