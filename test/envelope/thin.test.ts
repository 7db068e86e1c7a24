import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { HoldfastError, type JsonObject, type JsonValue } from '../../src/core/index.js';
import { buildThinEnvelope, envelopeV2 } from '../../src/envelope/index.js';
import { reviewContract } from '../node/thin-pair.js';
import { BILLING, envelopeJson, TRIAGE } from './fixtures.js';

const validate = new Ajv2020({ strict: true, allErrors: true }).compile(envelopeV2.jsonSchema());

const built = buildThinEnvelope({
  contract: reviewContract(),
  root: TRIAGE,
  incarnation: 'inc_1',
  case_id: 'CASE-7001',
  kind: 'refund',
  handoff_id: 'CASE-7001:4',
  attempt: 1,
  from_agent: TRIAGE,
  to_agent: BILLING,
  epoch: 3,
  accept_by: '2026-01-31T12:00:00.000Z',
  chain: { hops: [TRIAGE], tasks_left: 4 },
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
});
const document = JSON.parse(built.canonical) as JsonObject;

/** Whether it is read; the JSON Schema agrees. */
function isRead(value: JsonValue): boolean {
  let read = true;
  try {
    envelopeV2.parse(value);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.code).toBe('schema_invalid');
    read = false;
  }
  expect(validate(value)).toBe(read);
  return read;
}

describe('a thin envelope', () => {
  it('[R-191] names the case and says nothing of it', async () => {
    expect(isRead(document)).toBe(true);
    expect(built.envelope).toMatchObject({ ...document, thin: true, facts: [], references: [], goal: '' });
    const rich = await envelopeJson();
    expect(envelopeV2.parse(rich)).not.toHaveProperty('thin');
    const kept = Object.keys(document);
    expect(
      Object.keys(rich)
        .filter((name) => !kept.includes(name))
        .sort(),
    ).toEqual([
      ...['constraints', 'done', 'effects', 'facts', 'goal', 'open_questions', 'provenance', 'references'],
      ...['remaining', 'required_output', 'summary'],
    ]);
    expect(Buffer.byteLength(built.canonical)).toBeLessThan(1_000);
  });

  it('has all of its fields, and no other', async () => {
    for (const field of Object.keys(document)) {
      const { [field]: _, ...rest } = document;
      expect(isRead(rest), field).toBe(false);
    }
    const rich = await envelopeJson();
    for (const field of Object.keys(rich).filter((name) => !Object.hasOwn(document, name))) {
      expect(isRead({ ...document, [field]: rich[field] ?? null }), field).toBe(false);
    }
    expect(isRead({ ...document, thin: true })).toBe(false);
    expect(isRead({ ...document, accept_by: 'tomorrow' })).toBe(false);
  });
});
