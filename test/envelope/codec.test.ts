import { Ajv2020 } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { HoldfastError, type JsonObject, type JsonValue } from '../../src/core/index.js';
import { envelopeV2 } from '../../src/envelope/index.js';
import { envelopeJson, reference } from './fixtures.js';

const validate = new Ajv2020({ strict: true, allErrors: true }).compile(envelopeV2.jsonSchema());

let valid: JsonObject;
beforeAll(async () => {
  valid = await envelopeJson();
});

function refusal(value: JsonValue): string[] {
  try {
    envelopeV2.parse(value);
  } catch (error) {
    if (error instanceof HoldfastError) return [error.code, ...error.fields.map(({ path }) => path)];
    throw error;
  }
  return [];
}

/** Sets (or, with undefined, removes) a value deep in a copy of the envelope. */
function bend(path: string, value: JsonValue | undefined): JsonObject {
  const copy = structuredClone(valid);
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  let at = copy as Record<string, JsonValue>;
  for (const key of keys) at = at[key] as Record<string, JsonValue>;
  if (value === undefined) delete at[last];
  else at[last] = value;
  return copy;
}

const FIELDS = [
  ...[
    'version',
    'root',
    'incarnation',
    'case_id',
    'kind',
    'handoff_id',
    'attempt',
    'from_agent',
    'to_agent',
    'epoch',
  ],
  ...['contract', 'skill', 'goal', 'done', 'remaining', 'facts', 'open_questions', 'constraints', 'summary'],
  ...['references', 'effects', 'accept_by', 'chain', 'provenance', 'trace'],
];

describe('envelope version 2', () => {
  it('takes what the builder makes, and so does its JSON Schema', () => {
    expect(envelopeV2.parse(valid)).toEqual(valid);
    expect(validate(valid)).toBe(true);
  });

  it.each(FIELDS)('requires %s', (field) => {
    const bent = bend(field, undefined);
    expect(refusal(bent)).toEqual(['schema_invalid', field]);
    expect(validate(bent)).toBe(false);
  });

  it.each<[path: string, value: JsonValue | undefined]>([
    ['version', 3],
    ['version', '2'],
    ['root', 'https://Triage.example'],
    ['root', 'https://triage.example/'],
    ['root', 'ftp://triage.example'],
    ['from_agent', 'https://user:pw@triage.example'],
    ['to_agent', 'https://triage.example/?a=b'],
    ['case_id', 'CASE:7001'],
    ['case_id', ''],
    ['kind', 'a kind'],
    ['handoff_id', 'CASE-7001'],
    ['handoff_id', 'CASE-7001:0'],
    ['attempt', 0],
    ['attempt', 1.5],
    ['attempt', '1'],
    ['epoch', 0],
    ['epoch', 9007199254740991],
    ['contract', 'refund-dispute'],
    ['contract', 'Refund/1'],
    ['skill', 'Billing desk'],
    ['goal', ''],
    ['goal', 'x'.repeat(501)],
    ['goal', '\u001b[31mred'],
    ['goal', '\u009b31mred'],
    ['done.0', 'next\u0085line'],
    ['done', 'all'],
    ['done.0', 'x'.repeat(201)],
    ['done.0', 5],
    ['facts.0.key', 'a key'],
    ['facts.0.verified', 'true'],
    ['facts.0.verified', undefined],
    ['facts.0.value', undefined],
    ['facts.0.confidence', 0.9],
    ['facts.3.observed_at', '2026-01-31T10:05:00+01:00'],
    ['constraints.deadline', 'tomorrow'],
    ['constraints.caps.refund.amount', 100],
    ['constraints.caps.refund.amount', '1e2'],
    ['constraints.caps.refund.amount', '-1'],
    ['constraints.caps.refund.currency', 'eur'],
    ['constraints.caps.Refund Now', { amount: '1', currency: 'EUR' }],
    ['constraints.prohibitions.0', 'do not publish'],
    ['constraints.note', 'x'],
    ['required_output', 'x'],
    ['artifact', { id: 'a', version: 1 }],
    ['artifact', { id: 'a', version: '1', digest: 'a'.repeat(64) }],
    ['source_task_id', null],
    ['summary.text', 'x'.repeat(2001)],
    ['summary.generated_from', undefined],
    ['references.0.url', 'file:///etc/passwd'],
    ['references.0.media_type', 'Text/Plain'],
    ['references.0.filename', '../../etc/cron.d/x'],
    ['references.0.filename', 'invoice\u202efdp.exe'],
    ['references.0.filename', 'invoice\u061c.pdf'],
    ['references.0.filename', 'invoice\u200f.pdf'],
    ['references.0.filename', 'two\u2028lines.pdf'],
    ['references.0.filename', 'invoice\u009b.pdf'],
    ['references.0.bytes', -1],
    ['references.0.version', 0],
    ['references.0.expires_at', undefined],
    ['references.0.title', 'x'],
    ['effects', [{ key: 'k', status: 'maybe', operation: 'refund' }]],
    ['accept_by', '2026-01-31'],
    ['chain.hops', ['triage']],
    ['chain.tasks_left', -1],
    ['provenance', ['not a jws']],
    ['trace.traceparent', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
    ['approved', true],
  ])('[R-041][R-068] refuses %s = %j, as its JSON Schema does', (path, value) => {
    const bent = bend(path, value);
    expect(refusal(bent)[0]).toBe('schema_invalid');
    expect(refusal(bent)[1]).toContain(path);
    expect(validate(bent)).toBe(false);
  });

  it.each<[path: string, value: JsonValue]>([
    ['facts.0.value', null],
    ['facts.0.value', { a: [1, 'x', null, { b: true }] }],
    ['goal', '😀'.repeat(500)],
    ['goal', 'two\nlines'],
    ['artifact', { id: 'art_1', version: 1, digest: 'a'.repeat(64) }],
    ['source_task_id', 'task_1'],
    ['root', 'http://127.0.0.1:4001'],
    ['root', 'http://[::1]:4001/a'],
    ['references', []],
    [
      'effects',
      [
        {
          key: 'refund-pay_A',
          status: 'done',
          operation: 'refund',
          amount: { amount: '1', currency: 'EUR' },
        },
      ],
    ],
    ['chain.spend_left', { amount: '10.00', currency: 'EUR' }],
    ['epoch', 9007199254740990],
  ])('takes %s = %j, as its JSON Schema does', (path, value) => {
    const bent = bend(path, value);
    expect(refusal(bent)).toEqual([]);
    expect(validate(bent)).toBe(true);
  });

  it('[R-041] takes an epoch that arrives as 3.0 for 3', () => {
    const text = JSON.stringify(valid).replace('"epoch":3', '"epoch":3.0');
    expect(text).toContain('3.0');
    expect(envelopeV2.parse(JSON.parse(text)).epoch).toBe(3);
    expect(validate(JSON.parse(text))).toBe(true);
  });

  it.each<[string, JsonValue, string]>([
    ['accept_by', '2026-02-30T00:00:00Z', 'accept_by'],
    ['constraints.deadline', '2027-02-29T00:00:00Z', 'constraints.deadline'],
    ['root', 'https://triage.example:443', 'root'],
    ['to_agent', 'https://billing.example/a/../b', 'to_agent'],
    ['chain.hops', ['https://triage.example:443'], 'chain.hops.0'],
    [
      'references',
      [reference as unknown as JsonObject, reference as unknown as JsonObject],
      'references.1.url',
    ],
    [
      'effects',
      [
        { key: 'k', status: 'done', operation: 'refund' },
        { key: 'k', status: 'failed', operation: 'refund' },
      ],
      'effects.1.key',
    ],
  ])('refuses what only a closer look at %s shows', (path, value, field) => {
    expect(refusal(bend(path, value))).toEqual(['schema_invalid', field]);
  });

  it('[R-030] says so when all that is wrong is a fact without a source', () => {
    expect(refusal(bend('facts.0.source', undefined))).toEqual(['fact_unsourced', 'facts.0.source']);
    expect(refusal(bend('facts.1.source', ''))).toEqual(['fact_unsourced', 'facts.1.source']);
    const bent = bend('facts.0.source', undefined);
    expect(refusal({ ...bent, goal: '' })[0]).toBe('schema_invalid');
  });

  it('[R-047] says so when all that is wrong is a hash that is none', () => {
    for (const sha256 of [undefined, '', 'ABC', reference.sha256.toUpperCase(), reference.sha256.slice(1)]) {
      expect(refusal(bend('references.0.sha256', sha256))).toEqual([
        'evidence_hash_missing',
        'references.0.sha256',
      ]);
    }
  });

  it('[R-069] names the first three problems and counts all', () => {
    const bent = { ...valid, goal: 1, done: 1, remaining: 1, skill: 1, kind: 1 };
    expect(() => envelopeV2.parse(bent)).toThrow(expect.objectContaining({ data: { problems: 5 } }));
    expect(refusal(bent)).toEqual(['schema_invalid', 'kind', 'skill', 'goal']);
  });

  it('keeps control characters of made-up keys out of what it answers', () => {
    expect(refusal({ ...valid, 'a\u0000\n': 1 })).toEqual(['schema_invalid', 'a??']);
  });

  it.each<[string, JsonValue]>([
    ['a long text', 'x'.repeat(2001)],
    ['many small values', { a: Array.from({ length: 100 }, () => 'x'.repeat(40)) }],
    ['many items', Array(101).fill(1)],
    ['a spoken transcript', 'Ann: hi\nBot: hello\nAnn: charged twice\nBot: let me look'],
    ['a stamped transcript', '[10:00] Ann: hi\n[10:01] Bot: hello\n[10:02] Ann: twice\n[10:03] Bot: ok'],
    [
      'turns as objects',
      [
        { role: 'user', content: 'hi' },
        { role: 'agent', content: 'hello' },
        { role: 'user', content: 'twice' },
      ],
    ],
    ['a transcript further in', { chat: { log: Array(3).fill({ speaker: 'Ann', text: 'hi' }) } }],
    ['a data URL', 'data:text/plain;base64,aGVsbG8='],
    ['encoded content', 'QUJD'.repeat(200)],
  ])('[R-043][R-168] refuses %s as a fact', (_, value) => {
    expect(refusal(bend('facts.0.value', value))).toEqual(['evidence_inline', 'facts.0.value']);
  });

  it('takes a labelled list for what it is', () => {
    const address = 'Street: Long Lane 1\nTown: Newport\nCountry: Wales\nNote: second door';
    expect(refusal(bend('facts.0.value', address))).toEqual([]);
  });
});
