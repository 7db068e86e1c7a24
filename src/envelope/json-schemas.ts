import * as z from 'zod';
import type { JsonObject } from '../core/index.js';
import { receiptPartSchema, rejectionPartSchema } from './answers.js';
import { answerPartSchema, questionPartSchema } from './clarification.js';
import { envelopeV2 } from './v2/index.js';

/** The published JSON Schemas (2020-12) by file name: what others validate against without this package. */
export function renderJsonSchemas(): Record<string, JsonObject> {
  return {
    'answer-v1.schema.json': z.toJSONSchema(answerPartSchema) as JsonObject,
    'envelope-v2.schema.json': envelopeV2.jsonSchema(),
    'question-v1.schema.json': z.toJSONSchema(questionPartSchema) as JsonObject,
    'receipt-v1.schema.json': z.toJSONSchema(receiptPartSchema) as JsonObject,
    'rejection-v1.schema.json': z.toJSONSchema(rejectionPartSchema) as JsonObject,
  };
}
