import { describe, expect, it } from 'vitest';
import { defineContract, refundDispute } from '../../src/contract/index.js';
import { DEFAULT_LIMITS, HoldfastError, type JsonObject } from '../../src/core/index.js';
import { buildOfferMessage, parseCaseFile, redact } from '../../src/envelope/index.js';
import { build, bytesOf, caseFileJson, reference, registry } from './fixtures.js';

const CANARY = 'CANARY-7f3a';
const fileOf = (change: JsonObject = {}) =>
  parseCaseFile(bytesOf({ ...caseFileJson(), ...change }), DEFAULT_LIMITS);
const facts = () => caseFileJson().facts as JsonObject[];

/** The code and the paths of what a case file is refused for. */
function refusal(change: JsonObject): string[] {
  try {
    redact(fileOf(change), refundDispute);
  } catch (error) {
    if (error instanceof HoldfastError) return [error.code, ...error.fields.map(({ path }) => path)];
    throw error;
  }
  return [];
}

describe('redaction', () => {
  it('[R-054][R-056] lets out what the contract names and nothing else, wherever it stands', async () => {
    const change: JsonObject = {
      history: [CANARY],
      artifact: { id: 'art_9', version: 1, digest: 'a'.repeat(64) },
      source_task_id: CANARY,
      facts: [
        ...facts().map((fact) => ({ ...fact, comment: CANARY })),
        { key: 'past_orders', value: CANARY, source: 'crm', verified: true },
      ],
    };
    const built = await build(change);
    const message = JSON.stringify(buildOfferMessage(built, registry));
    expect(message).not.toContain(CANARY);
    expect(message).not.toContain('art_9');
    expect(message).not.toContain('past_orders');
    expect(built.envelope.facts.map(({ key }) => key)).toEqual(Object.keys(refundDispute.facts).slice(0, 4));
  });

  it('[R-059] records what it kept back by path and rule, without the values', () => {
    const { withheld } = redact(
      fileOf({
        history: [CANARY],
        source_task_id: 'task_1',
        facts: [...facts(), { key: 'past_orders', value: CANARY, source: 'crm', verified: true }],
      }),
      refundDispute,
    );
    expect(withheld).toEqual([
      { path: 'history', rule: 'unknown_field' },
      { path: 'facts.past_orders', rule: 'not_in_contract' },
      { path: 'source_task_id', rule: 'not_in_contract' },
    ]);
    expect(JSON.stringify(withheld)).not.toContain(CANARY);
  });

  it('[R-054] follows another contract to another result', () => {
    const narrow = defineContract({
      ...refundDispute,
      name: 'narrow',
      facts: {},
      allow: ['source_task_id'],
      constraints: { deadline: false, caps: [], prohibitions: [] },
    });
    const { withheld, ...fields } = redact(fileOf({ source_task_id: 'task_1' }), narrow);
    expect(fields).toEqual({
      facts: [],
      goal: narrow.purpose,
      done: [],
      remaining: [],
      open_questions: [],
      constraints: { caps: {}, prohibitions: [] },
      source_task_id: 'task_1',
    });
    expect(withheld.map(({ path }) => path)).toEqual([
      'facts.account_id',
      'facts.payment_a',
      'facts.payment_b',
      'facts.disputed_amount',
      'goal',
      'done',
      'remaining',
      'open_questions',
      'constraints',
    ]);
  });

  it.each<[string, JsonObject, string]>([
    ['the goal', { goal: 'Call +49 170 1234567' }, 'goal'],
    ['what is done', { done: ['Account verified', 'Mailed ann@mail.example'] }, 'done.1'],
    ['what remains', { remaining: ['Refund to DE89 3704 0044 0532 0130 00'] }, 'remaining.0'],
    ['a question', { open_questions: ['Is 4111 1111 1111 1111 the card?'] }, 'open_questions.0'],
    [
      'a value inside a fact',
      {
        facts: [
          {
            key: 'payment_a',
            value: { id: { deep: ['0151 23456789'] } },
            source: 'payments',
            verified: true,
          },
        ],
      },
      'facts.payment_a.value.id.deep.0',
    ],
    [
      'a source',
      { facts: [{ key: 'reason', value: 'duplicate_charge', source: 'ann@mail.example', verified: false }] },
      'facts.reason.source',
    ],
    [
      'the name of a property',
      {
        facts: [
          {
            key: 'payment_a',
            value: { id: { 'ann@mail.example': true } },
            source: 'payments',
            verified: true,
          },
        ],
      },
      'facts.payment_a.value.id.[email removed]',
    ],
    [
      'a number',
      { facts: [{ key: 'payment_a', value: { id: 4111111111111111 }, source: 'payments', verified: true }] },
      'facts.payment_a.value.id',
    ],
    ['a token', { goal: `Use Bearer ${'a1b2'.repeat(8)}` }, 'goal'],
  ])(
    '[R-040][R-057] refuses personal data or credentials in %s, naming the field only',
    async (_, change, path) => {
      expect(refusal(change)).toEqual(['personal_data', path]);
      await expect(build(change)).rejects.toMatchObject({ code: 'personal_data' });
    },
  );

  it('[R-059] does not repeat personal data that stands in the name of what it kept back', () => {
    const kept = redact(
      fileOf({
        'ann@mail.example': 1,
        constraints: { ...(caseFileJson().constraints as JsonObject), '+49 170 1234567': true },
        facts: [...facts(), { key: 'tel.01701234567', value: 1, source: 'crm', verified: true }],
      }),
      refundDispute,
    ).withheld;
    expect(kept.map(({ path }) => path)).toEqual([
      '[email removed]',
      'constraints.[phone removed]',
      'facts.[phone removed]',
    ]);
  });

  it('[R-040][R-057] refuses a file name that tells who it is about', async () => {
    const named = { ...reference, filename: 'claim of ann@mail.example.txt' };
    await expect(build({}, { references: [reference, named] })).rejects.toMatchObject({
      code: 'personal_data',
      fields: [{ path: 'references.1.filename', problem: 'looks like an e-mail address' }],
    });
  });

  it('does not look at what stays behind anyway', () => {
    const phone = { key: 'phone', value: '+49 170 1234567', source: 'crm', verified: true };
    expect(refusal({ facts: [...facts(), phone], contact: 'ann@mail.example' })).toEqual([]);
  });

  it('lets a fact out that the contract declares personal, and keeps it out of summary and log', async () => {
    const contract = defineContract({
      ...refundDispute,
      facts: { ...refundDispute.facts, account_id: { ...refundDispute.facts.account_id, ...PERSONAL } },
    });
    const changed = facts().map((fact) =>
      fact.key === 'account_id' ? { ...fact, value: '+49 170 1234567' } : fact,
    );
    const { envelope, loggable } = await build({ facts: changed }, { contract });
    expect(envelope.facts[0]?.value).toBe('+49 170 1234567');
    expect(envelope.summary.text).not.toContain('1234567');
    expect(Object.keys(loggable)).toEqual(['disputed_amount']);
  });

  it('[R-057] looks at the summary as a whole, where a name and a number come together', async () => {
    const contract = defineContract({
      ...refundDispute,
      facts: {
        ...refundDispute.facts,
        account_id: { ...refundDispute.facts.account_id, ...PERSONAL, personal: false },
      },
    });
    const changed = facts().map((fact) =>
      fact.key === 'account_id' ? { ...fact, value: { phone: '5551234' } } : fact,
    );
    await expect(build({ facts: changed }, { contract })).rejects.toMatchObject({
      code: 'personal_data',
      fields: [{ path: 'summary.text', problem: 'looks like a phone number' }],
    });
  });

  it('[R-128] carries no approval: neither a field nor a fact of that name leaves', async () => {
    const approval = { key: 'approved', value: 'the user approved this', source: 'customer', verified: true };
    const { envelope, withheld } = await build({ approved: true, facts: [...facts(), approval] });
    expect(JSON.stringify(envelope)).not.toContain('approved');
    expect(withheld.map(({ path }) => path)).toEqual(['approved', 'facts.approved']);
  });
});

const PERSONAL = {
  schema: {
    '~standard': { version: 1 as const, vendor: 'own', validate: (value: unknown) => ({ value }) },
  },
  required: true,
  why: 'Value: the receiver calls the customer back.',
  personal: true,
  loggable: false,
};
