import { describe, expect, it } from 'vitest';
import { DEFAULT_LIMITS, HoldfastError } from '../../src/core/index.js';
import { checkCaseFile, parseCaseFile } from '../../src/envelope/index.js';
import { bytesOf, caseFileJson } from './fixtures.js';

const parse = (change: object) => parseCaseFile(bytesOf({ ...caseFileJson(), ...change }), DEFAULT_LIMITS);

function refusal(bytes: Uint8Array): [string, ...string[]] {
  try {
    parseCaseFile(bytes, DEFAULT_LIMITS);
  } catch (error) {
    if (error instanceof HoldfastError) return [error.code, ...error.fields.map(({ path }) => path)];
    throw error;
  }
  throw new Error('accepted');
}

const first = { key: 'account_id', value: 'acct_881', source: 'auth', verified: true };

describe('a case file', () => {
  it('is read, with lists that may be absent', () => {
    const file = parseCaseFile(
      bytesOf({ case_id: 'CASE-1', kind: 'k', goal: 'g', facts: [first] }),
      DEFAULT_LIMITS,
    );
    expect(file).toEqual({
      case_id: 'CASE-1',
      kind: 'k',
      goal: 'g',
      done: [],
      remaining: [],
      facts: [first],
      open_questions: [],
      constraints: { caps: {}, prohibitions: [] },
      unlisted: [],
    });
  });

  it('[R-059] keeps of what it does not know the path and nothing else', () => {
    const file = parse({
      transcript: 'CANARY-1',
      customer: { phone: 'CANARY-2' },
      facts: [{ ...first, note: 'CANARY-3' }],
      constraints: { caps: {}, prohibitions: [], hint: 'CANARY-4' },
      artifact: { id: 'a', version: 1, digest: 'a'.repeat(64), title: 'CANARY-5' },
    });
    expect(file.unlisted).toEqual([
      'transcript',
      'customer',
      'facts.0.note',
      'constraints.hint',
      'artifact.title',
    ]);
    expect(JSON.stringify(file)).not.toContain('CANARY');
  });

  it('[R-030][R-169] refuses facts that name no source', () => {
    const { source, ...unsourced } = first;
    for (const fact of [unsourced, { ...first, source: '' }, { ...first, source: null }]) {
      expect(refusal(bytesOf({ ...caseFileJson(), facts: [first, fact] }))).toEqual([
        'fact_unsourced',
        'facts.1.source',
      ]);
    }
  });

  it.each<[object, string]>([
    [{ case_id: 'CASE:1' }, 'case_id'],
    [{ goal: '' }, 'goal'],
    [{ goal: 'x'.repeat(501) }, 'goal'],
    [{ goal: 'bell \u0007' }, 'goal'],
    [{ done: 'everything' }, 'done'],
    [{ done: Array(51).fill('x') }, 'done'],
    [{ remaining: ['x'.repeat(201)] }, 'remaining.0'],
    [{ facts: [{ ...first, verified: undefined }] }, 'facts.0.verified'],
    [{ facts: [{ ...first, key: '__proto' }] }, 'facts.0.key'],
    [{ facts: [{ ...first, observed_at: '2026-02-30T00:00:00Z' }] }, 'facts.0.observed_at'],
    [{ constraints: { deadline: '2026-02-30T00:00:00Z' } }, 'constraints.deadline'],
    [
      { constraints: { caps: { refund: { amount: 100, currency: 'EUR' } } } },
      'constraints.caps.refund.amount',
    ],
    [{ constraints: { prohibitions: ['do not publish'] } }, 'constraints.prohibitions.0'],
    [{ required_output: 'decision' }, 'required_output'],
    [{ artifact: { id: 'a', version: 1, digest: 'ABC' } }, 'artifact.digest'],
  ])('is refused with %j', (change, path) => {
    expect(refusal(bytesOf({ ...caseFileJson(), ...change }))).toEqual(['case_file_invalid', path]);
  });

  it('is refused where it is not strict JSON, with the place', () => {
    expect(refusal(new TextEncoder().encode('{"case_id":1,}'))).toEqual(['case_file_invalid']);
    expect(() => parseCaseFile(new TextEncoder().encode('{"a":1,"a":2}'), DEFAULT_LIMITS)).toThrow(
      /duplicate_key at byte 7/,
    );
    expect(refusal(bytesOf([]))).toEqual(['case_file_invalid', '']);
    expect(refusal(bytesOf(null))).toEqual(['case_file_invalid', '']);
  });

  it('reads a text as well as bytes, and nothing else', () => {
    const text = JSON.stringify(caseFileJson());
    expect(parseCaseFile(text)).toEqual(parseCaseFile(bytesOf(caseFileJson())));
    expect(() => parseCaseFile('{}')).toThrow(expect.objectContaining({ code: 'case_file_invalid' }));
    expect(() => parseCaseFile(caseFileJson() as never)).toThrow(/as bytes or as a text/);
  });

  it('judges an object as it judges its JSON', () => {
    const plain = { ...caseFileJson(), customer_name: 'Jo' };
    const file = parseCaseFile(JSON.stringify(plain));
    expect(file.unlisted).toContain('customer_name');
    expect(checkCaseFile(plain)).toEqual(file);
    expect(checkCaseFile(file)).toEqual(file);
    const loop: Record<string, unknown> = { ...plain };
    loop.goal = loop;
    for (const wrong of [{}, { ...file, goal: 5 }, loop]) {
      expect(() => checkCaseFile(wrong)).toThrow(expect.objectContaining({ code: 'case_file_invalid' }));
    }
    expect(() => checkCaseFile({ ...plain, facts: [{ key: 'a', value: 1, verified: true }] })).toThrow(
      expect.objectContaining({ code: 'fact_unsourced' }),
    );
  });
});
