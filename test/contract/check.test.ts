import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  accept,
  type ContractSubject,
  checkContract,
  checkOutput,
  defineContract,
  type OfferView,
  refundDispute,
  reject,
} from '../../src/contract/index.js';
import { HoldfastError } from '../../src/core/index.js';

const payment = (id: string, amount = '49.00') => ({
  id,
  amount,
  currency: 'EUR',
  method: 'card',
  created_at: '2026-01-31T10:00:00Z',
});
const fact = (key: string, value: unknown, source: string, verified = true) => ({
  key,
  value,
  source,
  verified,
});
const facts = [
  fact('account_id', 'acct_881', 'auth'),
  fact('payment_a', payment('pay_A'), 'payments'),
  fact('payment_b', payment('pay_B'), 'payments'),
  fact('disputed_amount', { amount: '49.00', currency: 'EUR' }, 'customer', false),
];
const reference = { media_type: 'text/plain', bytes: 1200 };
const subject: ContractSubject = {
  facts,
  constraints: {
    deadline: '2026-02-02T10:00:00Z',
    caps: { refund: { amount: '100.00', currency: 'EUR' } },
    prohibitions: [],
  },
  references: [reference],
  required_output: 'refund-decision/1',
};

async function refusal(change: Partial<ContractSubject>): Promise<string[]> {
  const error = await checkContract(refundDispute, { ...subject, ...change }).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof HoldfastError)) throw error ?? new Error('accepted');
  return [error.code, ...error.fields.map(({ path }) => path)];
}

const without = (key: string) => facts.filter((each) => each.key !== key);
const withFact = (key: string, change: object) =>
  facts.map((each) => (each.key === key ? { ...each, ...change } : each));

describe('checking a contract', () => {
  it('gives the validated outputs and leaves what was received as it was', async () => {
    const contract = defineContract({
      ...refundDispute,
      facts: { when: { schema: z.string().transform((text) => new Date(text)), required: true, why: 'x' } },
    });
    const received = [fact('when', '2026-01-31T10:00:00Z', 'clock')];
    const before = structuredClone(received);
    const outputs = await checkContract(contract, { ...subject, facts: received });
    expect(outputs).toEqual({ when: new Date('2026-01-31T10:00:00Z') });
    expect(received).toEqual(before);
  });

  it('hands a schema that changes its input a copy', async () => {
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'own',
        validate: async (value: unknown) => ({ value: Object.assign(value as object, { changed: true }) }),
      },
    };
    const contract = defineContract({ ...refundDispute, facts: { a: { schema, required: true, why: 'x' } } });
    const value = { kept: true };
    await checkContract(contract, { ...subject, facts: [fact('a', value, 's')] });
    expect(value).toEqual({ kept: true });
  });

  it('[R-030][R-169] keeps what was verified apart from what is only claimed', async () => {
    expect(await checkContract(refundDispute, subject)).toMatchObject({ account_id: 'acct_881' });
    expect(await refusal({ facts: withFact('payment_a', { verified: false }) })).toEqual([
      'fact_unverified',
      'facts.payment_a.verified',
    ]);
    expect(await refusal({ facts: withFact('account_id', { source: 'customer' }) })).toEqual([
      'fact_unverified',
      'facts.account_id.source',
    ]);
  });

  it('refuses facts that are missing, unknown, doubled or of another form', async () => {
    expect(await refusal({ facts: without('payment_b') })).toEqual(['fact_missing', 'facts.payment_b']);
    expect(await refusal({ facts: [...facts, fact('phone', 'x', 'crm')] })).toEqual([
      'fact_invalid',
      'facts.phone',
    ]);
    expect(await refusal({ facts: [...facts, ...facts.slice(0, 1)] })).toEqual([
      'fact_invalid',
      'facts.account_id',
    ]);
    expect(await refusal({ facts: [...facts, fact('toString', 'x', 'crm')] })).toEqual([
      'fact_invalid',
      'facts.toString',
    ]);
    expect(
      await refusal({ facts: withFact('payment_a', { value: { ...payment('pay_A'), amount: 49 } }) }),
    ).toEqual(['fact_invalid', 'facts.payment_a.value.amount']);
  });

  it('[R-102][R-032] refuses a case without the constraints the contract requires', async () => {
    const { deadline, ...undated } = subject.constraints;
    expect(await refusal({ constraints: undated })).toEqual(['constraint_missing', 'constraints.deadline']);
    expect(await refusal({ constraints: { ...subject.constraints, caps: {} } })).toEqual([
      'constraint_missing',
      'constraints.caps.refund',
    ]);
    const strict = defineContract({
      ...refundDispute,
      constraints: { ...refundDispute.constraints, prohibitions: ['publish'] },
    });
    await expect(checkContract(strict, subject)).rejects.toMatchObject({ code: 'constraint_missing' });
    const stated = { ...subject.constraints, prohibitions: ['publish'] };
    await expect(checkContract(strict, { ...subject, constraints: stated })).resolves.toBeDefined();
  });

  it('[R-101] refuses an empty list of evidence, and evidence of no bytes', async () => {
    expect(await refusal({ references: [] })).toEqual(['evidence_empty', 'references']);
    expect(await refusal({ references: [{ ...reference, bytes: 0 }] })).toEqual([
      'evidence_empty',
      'references.0.bytes',
    ]);
  });

  it('refuses evidence of another type, too large or too much, and another output', async () => {
    expect(await refusal({ references: [{ ...reference, media_type: 'text/html' }] })).toEqual([
      'evidence_media_type',
      'references.0.media_type',
    ]);
    expect(await refusal({ references: [reference, { ...reference, bytes: 5 * 1024 * 1024 + 1 }] })).toEqual([
      'evidence_too_large',
      'references.1.bytes',
    ]);
    expect(await refusal({ references: Array(6).fill(reference) })).toEqual(['schema_invalid', 'references']);
    expect(await refusal({ required_output: 'refund-decision/2' })).toEqual([
      'schema_invalid',
      'required_output',
    ]);
  });

  it('takes its code from the first problem and names all of them', async () => {
    expect(await refusal({ facts: without('account_id'), references: [] })).toEqual([
      'fact_missing',
      'facts.account_id',
      'references',
    ]);
  });
});

describe('the acceptance check of refund-dispute/1', () => {
  const offer = (values: Record<string, unknown> = {}, cap = '100.00', bytes = 1200): OfferView => ({
    caseId: 'CASE-7001',
    root: 'https://triage.example',
    fromAgent: 'https://triage.example',
    epoch: 3,
    clarifications: [],
    facts: {
      payment_a: payment('pay_A'),
      payment_b: payment('pay_B'),
      disputed_amount: { amount: '49', currency: 'EUR' },
      ...values,
    },
    envelope: { constraints: { caps: { refund: { amount: cap, currency: 'EUR' } } } },
    evidence: [
      {
        artifactId: 'art_1',
        version: 1,
        sha256: '',
        bytes,
        mediaType: 'text/plain',
        filename: 'a.txt',
        read: async () => new Uint8Array(bytes),
      },
    ],
  });
  const verdict = (view: OfferView) => refundDispute.accept?.(view);

  it('accepts a double charge', () => {
    expect(verdict(offer())).toEqual(accept());
  });

  it.each<[string, OfferView, string, string]>([
    [
      'the same payment twice',
      offer({ payment_b: payment('pay_A') }),
      'contract_refused',
      'facts.payment_b.value.id',
    ],
    [
      'two amounts',
      offer({ payment_b: payment('pay_B', '50.00') }),
      'contract_refused',
      'facts.payment_b.value.amount',
    ],
    [
      'a claim of more',
      offer({ disputed_amount: { amount: '500.00', currency: 'EUR' } }),
      'contract_refused',
      'facts.disputed_amount.value',
    ],
    ['a cap below the amount', offer({}, '48.99'), 'contract_refused', 'constraints.caps.refund'],
    ['empty evidence', offer({}, '100.00', 0), 'evidence_empty', 'references.0.bytes'],
  ])('[R-105] refuses %s with a code and the field', (_, view, code, path) => {
    expect(verdict(view)).toMatchObject({ verdict: 'reject', code, fields: [{ path }] });
  });

  it('[R-105] a refusal can point to another agent', () => {
    expect(reject('contract_refused', 'Not ours.', { hint: 'https://claims.example' })).toEqual({
      verdict: 'reject',
      code: 'contract_refused',
      reason: 'Not ours.',
      hint: 'https://claims.example',
    });
  });
});

describe('checking an output', () => {
  it('names every field that does not fit, and leaves what was given as it is', async () => {
    const result = { decision: 'refunded', amount: { amount: 'many', currency: 'EUR' }, foo: 1 };
    const before = structuredClone(result);
    await expect(checkOutput(refundDispute, result)).rejects.toMatchObject({
      code: 'output_invalid',
      fields: [{ path: 'result.amount.amount' }, { path: 'result' }],
    });
    expect(result).toEqual(before);
    await checkOutput(refundDispute, { decision: 'declined', reason: 'paid once' });
    await expect(checkOutput(refundDispute, undefined)).rejects.toMatchObject({ code: 'output_invalid' });
    const { output, id, ...free } = refundDispute;
    await checkOutput(defineContract(free), undefined);
  });
});
