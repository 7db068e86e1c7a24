import { describe, expect, it } from 'vitest';
import { defineContract, refundDispute } from '../../src/contract/index.js';
import { digestOf } from '../../src/core/index.js';
import { buildOfferMessage, summarize } from '../../src/envelope/index.js';
import { BILLING, build, caseFileJson, reference, registry, TRIAGE } from './fixtures.js';

describe('building an envelope', () => {
  it('[R-022][R-023][R-024][R-025][R-026][R-028][R-029][R-031][R-033][R-039] fills every field of version 2', async () => {
    const { envelope } = await build();
    const file = caseFileJson();
    expect(envelope).toMatchObject({
      version: 2,
      root: TRIAGE,
      incarnation: 'inc_1',
      case_id: 'CASE-7001',
      kind: 'refund-dispute',
      handoff_id: 'CASE-7001:4',
      attempt: 1,
      from_agent: TRIAGE,
      to_agent: BILLING,
      epoch: 3,
      contract: 'refund-dispute/1',
      skill: 'billing',
      goal: file.goal,
      done: file.done,
      remaining: file.remaining,
      open_questions: file.open_questions,
      constraints: file.constraints,
      required_output: 'refund-decision/1',
      effects: [],
      accept_by: '2026-01-31T12:00:00.000Z',
      chain: { hops: [TRIAGE], tasks_left: 4 },
      provenance: [],
      trace: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    });
  });

  it('[R-030] keeps source, verification and time of each fact', async () => {
    const { envelope } = await build();
    expect(envelope.facts).toEqual(caseFileJson().facts);
  });

  it('[R-035][R-043] names evidence by reference, whole', async () => {
    const { envelope } = await build();
    expect(envelope.references).toEqual([reference]);
  });

  it('[R-041] is the same canonical text and digest for the same case, with money as text', async () => {
    const [one, two] = [await build(), await build()];
    expect(one.canonical).toBe(two.canonical);
    expect(one.digest).toBe(digestOf(JSON.parse(one.canonical)));
    expect(one.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(one.canonical).toContain('"refund":{"amount":"100.00","currency":"EUR"}');
    expect((await build({ goal: 'Refund the double charge' })).digest).not.toBe(one.digest);
  });

  it('lets into the log what the contract declares loggable', async () => {
    expect((await build()).loggable).toEqual({
      account_id: 'acct_881',
      disputed_amount: { amount: '49.00', currency: 'EUR' },
    });
  });

  it('[R-046][R-170] refuses a reference that would expire before the offer does', async () => {
    const early = { ...reference, expires_at: '2026-01-31T11:59:59.999Z' };
    await expect(
      build({}, { references: [reference, { ...early, url: `${reference.url}2` }] }),
    ).rejects.toMatchObject({
      code: 'evidence_expires_early',
      fields: [{ path: 'references.1.expires_at' }],
    });
    const exact = { ...reference, expires_at: '2026-01-31T12:00:00.000Z' };
    await expect(build({}, { references: [exact] })).resolves.toBeDefined();
  });

  it('[R-101][R-102] finds what the contract misses before anything is sent', async () => {
    await expect(build({}, { references: [] })).rejects.toMatchObject({ code: 'evidence_empty' });
    const { deadline, ...constraints } = caseFileJson().constraints as { deadline: string };
    await expect(build({ constraints })).rejects.toMatchObject({
      code: 'constraint_missing',
      fields: [{ path: 'constraints.deadline' }],
    });
    await expect(build({ required_output: 'essay/1' })).rejects.toMatchObject({
      code: 'schema_invalid',
      fields: [{ path: 'required_output' }],
    });
  });

  it('[R-038] refuses to be larger than the limit', async () => {
    const { canonical } = await build();
    const size = new TextEncoder().encode(canonical).length;
    await expect(build({}, { maxEnvelopeBytes: size })).resolves.toBeDefined();
    await expect(build({}, { maxEnvelopeBytes: size - 1 })).rejects.toMatchObject({
      code: 'envelope_too_large',
      data: { bytes: size, maxBytes: size - 1 },
    });
  });

  it('[R-043][R-168] refuses a transcript in a text field', async () => {
    const turns = 'Ann: hi\nBot: hello\nAnn: charged twice\nBot: let me look';
    await expect(build({ goal: turns })).rejects.toMatchObject({
      code: 'evidence_inline',
      fields: [{ path: 'goal', problem: 'looks like a transcript' }],
    });
  });

  it('[R-027][R-036] names the artifact that is meant and the task it came from, where the contract allows it', async () => {
    const artifact = { id: 'art_1', version: 1, digest: reference.sha256 };
    const contract = defineContract({
      ...refundDispute,
      allow: [...refundDispute.allow, 'artifact', 'source_task_id'],
    });
    const built = await build({ artifact, source_task_id: 'task_17' }, { contract });
    expect(built.envelope).toMatchObject({ artifact, source_task_id: 'task_17' });
    expect(buildOfferMessage(built, registry)).not.toHaveProperty('referenceTaskIds');
  });

  it('carries the effects that came before', async () => {
    const effects = [
      {
        key: 'refund-pay_A',
        status: 'unknown' as const,
        operation: 'refund',
        amount: { amount: '1.00', currency: 'EUR' },
      },
    ];
    const { envelope } = await build({}, { effects });
    expect(envelope.effects).toEqual(effects);
  });

  it('reads back what it made, so that a wrong input cannot leave', async () => {
    await expect(build({}, { to_agent: `${BILLING}/` })).rejects.toMatchObject({
      code: 'schema_invalid',
      fields: [{ path: 'to_agent' }],
    });
    await expect(build({}, { traceparent: 'x' })).rejects.toMatchObject({
      fields: [{ path: 'trace.traceparent' }],
    });
  });
});

describe('the summary', () => {
  it('[R-034][R-057][R-194] is made from structured fields, labelled, with verified facts first and the evidence named', async () => {
    const { summary } = (await build()).envelope;
    expect(summary.text).toMatch(/^Generated from structured fields/);
    expect(summary.generated_from).toEqual([
      'goal',
      'facts',
      'done',
      'remaining',
      'open_questions',
      'constraints',
      'references',
    ]);
    const verified = summary.text.indexOf('Verified: account_id = acct_881 (auth)');
    const claimed = summary.text.indexOf(
      'Claimed, not verified: disputed_amount = amount 49.00, currency EUR (customer)',
    );
    expect(verified).toBeGreaterThan(0);
    expect(claimed).toBeGreaterThan(verified);
    expect(summary.text).toContain('refund at most 100.00 EUR; no publish');
    expect(summary.text).toContain('Evidence: transcript.txt (text/plain, 1234 bytes)');
  });

  it('[R-034] stays within 2,000 characters and leaves out whole entries, never halves', () => {
    const done = Array.from({ length: 50 }, (_, at) => `step ${at} ${'😀'.repeat(90)} end`);
    const { text, generated_from } = summarize({
      goal: 'g',
      done,
      remaining: ['last'],
      facts: [],
      open_questions: [],
      constraints: { caps: {}, prohibitions: [] },
      references: [],
    });
    expect([...text].length).toBeLessThanOrEqual(2000);
    expect([...text].length).toBeGreaterThan(1850);
    expect(
      text
        .split(/; |: |\n/)
        .filter((piece) => piece.startsWith('step'))
        .every((piece) => piece.endsWith(' end')),
    ).toBe(true);
    expect(text).toContain('Remaining: last');
    expect(generated_from).toEqual(['goal', 'done', 'remaining']);
  });

  it('says nothing of what is absent', () => {
    const fields = { ...refundDispute, goal: 'g', done: [], remaining: [], facts: [], open_questions: [] };
    const { text } = summarize({ ...fields, constraints: { caps: {}, prohibitions: [] }, references: [] });
    expect(text.split('\n').slice(1)).toEqual(['Goal: g']);
  });
});
