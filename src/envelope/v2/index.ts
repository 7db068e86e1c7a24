import * as z from 'zod';
import type { FieldError, JsonObject, JsonValue } from '../../core/index.js';
import type { EnvelopeCodec, HandoffEnvelope } from '../model.js';
import { documentError, fieldsOf } from '../problems.js';
import { checkForm, checkInline } from './checks.js';
import { envelopeV2Schema } from './schema.js';

/** A refusal of its own where nothing else is wrong, because it tells the sender what to correct. */
function codeOf(fields: readonly FieldError[]) {
  if (fields.every(({ path }) => /^facts\.\d+\.source$/.test(path))) return 'fact_unsourced';
  if (fields.every(({ path }) => /^references\.\d+\.sha256$/.test(path))) return 'evidence_hash_missing';
  return 'schema_invalid';
}

function parse(value: JsonValue): HandoffEnvelope {
  const result = envelopeV2Schema.safeParse(value);
  if (!result.success) {
    const fields = fieldsOf(result.error);
    throw documentError(codeOf(fields), fields);
  }
  const envelope: HandoffEnvelope = result.data;
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
