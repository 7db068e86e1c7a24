import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import { accept, type CaseReader, type OfferView, openHoldfast } from '../../src/index.js';
import { temporaryFolder } from '../cli/support.js';
import { createTestDatabase, type TestDatabase } from '../postgres/database.js';
import { type PairOptions, reviewContract, startThinPair, type ThinPair } from './thin-pair.js';

const THIN_FIELDS = [
  ...['accept_by', 'attempt', 'case_id', 'chain', 'contract', 'epoch', 'from_agent', 'handoff_id'],
  ...['incarnation', 'kind', 'root', 'skill', 'to_agent', 'trace', 'version'],
];
const CASE = 'CASE-7001';

let folder: ReturnType<typeof temporaryFolder>;
let database: TestDatabase | null;
let pair: ThinPair | null;

beforeEach(() => {
  folder = temporaryFolder();
  database = null;
  pair = null;
});

afterEach(async () => {
  await pair?.close();
  await database?.drop();
  folder.remove();
});

async function startOn(ledger: string, options: Omit<PairOptions, 'ledger'> = {}): Promise<ThinPair> {
  pair = await startThinPair({ ledger, ...options });
  await pair.triage.openCase({ caseId: CASE, kind: 'refund' });
  return pair;
}

const start = (options: Omit<PairOptions, 'ledger'> = {}) => startOn(join(folder.path, 'ledger.db'), options);

function handOff({ triage, billing }: ThinPair, change: object = {}) {
  const ref = triage.caseRef(CASE);
  return triage.handOff({ ref, to: billing.url, contract: 'refund-review/1', ...change });
}

async function envelopeOf({ triage }: ThinPair): Promise<Record<string, unknown>> {
  const [offer] = await triage.ledger.listOffers('default', { caseId: CASE });
  const { parts } = JSON.parse(offer?.message ?? '{}') as { parts: { data?: Record<string, unknown> }[] };
  expect(parts).toHaveLength(2);
  return parts[1]?.data ?? {};
}

const ownerOf = async ({ triage }: ThinPair) => (await triage.ledger.getCase(triage.caseRef(CASE)))?.owner;

describe.each(['SQLite', 'PostgreSQL'])('a thin contract, on %s', (storage) => {
  it('[R-191][R-195] hands a case over with nothing of it, which each side reads as itself', async () => {
    if (storage === 'PostgreSQL') database = await createTestDatabase();
    const seen: OfferView[] = [];
    const { triage, billing, payments } = await startOn(database?.url ?? join(folder.path, 'ledger.db'), {
      handler: {
        check: (view) => {
          seen.push(view);
          return accept();
        },
        work: async (work) => {
          await work.effect({
            key: 'refund-pay_B',
            operation: 'refund',
            amount: { amount: '49.00', currency: 'EUR' },
            perform: async () => 're_1',
            outcome: (id) => id,
          });
          await work.done();
        },
      },
    });
    payments.put(CASE, 'pay_B', '49.00', 'ring Ann on +49 170 1234567');

    const result = await handOff(pair as ThinPair);
    expect(result).toMatchObject({ state: 'accepted', owner: billing.url, epoch: 2 });
    expect(Object.keys(await envelopeOf(pair as ThinPair)).sort()).toEqual(THIN_FIELDS);

    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({
      facts: { payment: 'pay_B', disputed: { amount: '49.00', currency: 'EUR' } },
      evidence: [],
      envelope: {
        thin: true,
        constraints: { caps: { refund: { amount: '100.00', currency: 'EUR' } }, prohibitions: ['publish'] },
      },
    });
    expect(seen[0]?.facts).not.toHaveProperty('customer');

    await expect
      .poll(async () => (await billing.ledger.listWork('default', { state: 'done' })).length, {
        timeout: 10_000,
      })
      .toBe(1);
    const ref = triage.caseRef(CASE);
    const snapshot = await triage.ledger.snapshot(ref);
    expect(snapshot.case).toMatchObject({
      epoch: 2,
      constraints: { caps: { refund: { amount: '100.00', currency: 'EUR' } }, operations: ['refund'] },
    });
    verifyChain(snapshot.audit);
    expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);
    await expect(triage.note({ ref, epoch: 1, text: 'late' })).rejects.toMatchObject({ code: 'epoch_stale' });

    // What was read and is loggable is in the audit; the sum is not, nor a remark with a number to ring.
    const audit = JSON.stringify(snapshot.audit);
    expect(audit).toContain('pay_B');
    for (const kept of ['49.00","currency":"EUR"},"payment', '170 1234567', 'Ann Meyer']) {
      expect(audit).not.toContain(kept);
    }
    const loggable = snapshot.audit.filter(({ data }) => data?.loggable !== undefined);
    expect(loggable.map(({ data }) => data?.loggable)).toEqual([{ payment: 'pay_B' }, { payment: 'pay_B' }]);
  });
});

describe('a thin contract', () => {
  it('[R-195] goes the way of every offer: a resend gets the stored answer, other bytes are a conflict', async () => {
    const made = await start();
    made.payments.put(CASE, 'pay_B', '49.00');
    await handOff(made);
    const [offer] = await made.triage.ledger.listOffers('default', { caseId: CASE });
    const message = offer?.message ?? '';
    const again = await made.deliver(message);
    expect(again).toMatchObject({ status: { state: 'TASK_STATE_COMPLETED' } });
    const other = await made.deliver(message.replace(/"tasks_left":\d+/, '"tasks_left":1'));
    expect(other.artifacts?.[0]?.parts[0]?.data).toMatchObject({ code: 'duplicate_conflict', final: false });
    expect(await made.billing.ledger.listWork('default', {})).toHaveLength(1);
  });

  it('is not offered where a fact that it requires is not there, and nothing is stored', async () => {
    const made = await start();
    await expect(handOff(made)).rejects.toMatchObject({ code: 'records_disagree' });
    made.payments.put(CASE, null, '49.00');
    await expect(handOff(made)).rejects.toMatchObject({
      code: 'fact_missing',
      fields: [{ path: 'facts.payment' }],
    });
    expect(await made.triage.ledger.listOffers('default', {})).toEqual([]);
  });

  it('[R-191] is decided by what the receiver reads, not by what the sender has read', async () => {
    const made = await start({
      readers: {
        triage: () => ({
          facts: [
            { key: 'payment', value: 'pay_B', source: 'payments', verified: true },
            {
              key: 'disputed',
              value: { amount: '49.00', currency: 'EUR' },
              source: 'payments',
              verified: true,
            },
          ],
        }),
      },
    });
    expect(await handOff(made)).toMatchObject({ state: 'rejected', code: 'records_disagree' });
    made.payments.put(CASE, 'pay_B', '500.00');
    expect(await handOff(made)).toMatchObject({ state: 'rejected', code: 'contract_refused' });
    expect(await ownerOf(made)).toBe(made.triage.url);
    made.payments.put(CASE, 'pay_B', '49.00');
    expect(await handOff(made)).toMatchObject({ state: 'accepted', epoch: 2 });
  });

  it('needs the constraints that it requires from the policy of the kind', async () => {
    const made = await start({ prohibitions: [] });
    made.payments.put(CASE, 'pay_B', '49.00');
    await expect(handOff(made)).rejects.toMatchObject({
      code: 'constraint_missing',
      fields: [{ path: 'constraints.prohibitions.publish' }],
    });
  });

  it('[R-096] stays open where the reader of the receiver fails: that decides nothing', async () => {
    let fails = true;
    const made = await start({
      readers: {
        billing: () => {
          if (fails) throw new Error('payments is down: secret-host-7');
          return {
            facts: [
              { key: 'payment', value: 'pay_B', source: 'payments', verified: true },
              {
                key: 'disputed',
                value: { amount: '1.00', currency: 'EUR' },
                source: 'payments',
                verified: true,
              },
            ],
          };
        },
      },
    });
    made.payments.put(CASE, 'pay_B', '49.00');
    const result = await handOff(made);
    expect(result).toMatchObject({ state: 'open' });
    expect(JSON.stringify(result)).not.toContain('secret-host-7');
    fails = false;
    if (result.state !== 'open') throw new Error('decided');
    expect(await made.triage.resend(result.offer.key)).toMatchObject({ state: 'accepted', epoch: 2 });
  });

  it.each<[string, CaseReader]>([
    ['neither facts nor null', () => 7 as never],
    ['a fact in another form', () => ({ facts: [{ key: 'payment' }] as never })],
    ['a fact without a source', () => ({ facts: [{ key: 'payment', value: 'x', verified: true }] as never })],
  ])('tells of a reader that gives %s', async (_what, triage) => {
    const made = await start({ readers: { triage } });
    await expect(handOff(made)).rejects.toMatchObject({ code: 'reader_failed' });
  });

  it('takes neither a case file nor evidence, and a rich one needs a case file', async () => {
    const made = await start();
    made.payments.put(CASE, 'pay_B', '49.00');
    await expect(handOff(made, { caseFile: { case_id: CASE } })).rejects.toMatchObject({ code: 'usage' });
    await expect(handOff(made, { evidence: [{ artifactId: 'art_1' }] })).rejects.toMatchObject({
      code: 'usage',
    });
    expect(await made.triage.ledger.listOffers('default', {})).toEqual([]);
  });

  it('[R-195] is refused with a code where its envelope brings what it should not, or is another form than the contract', async () => {
    const made = await start();
    made.payments.put(CASE, 'pay_B', '49.00');
    const { triage, billing } = made;
    const ref = triage.caseRef(CASE);
    const thin = {
      version: 2,
      root: triage.url,
      incarnation: 'inc_1',
      case_id: CASE,
      kind: 'refund',
      handoff_id: `${CASE}:2`,
      from_agent: triage.url,
      to_agent: billing.url,
      epoch: 1,
      contract: 'refund-review/1',
      skill: 'review',
      accept_by: new Date(Date.now() + 60_000).toISOString(),
      chain: { hops: [triage.url], tasks_left: 5 },
      trace: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    };
    const rich = {
      goal: 'Review it',
      done: [],
      remaining: [],
      facts: [{ key: 'payment', value: 'pay_B', source: 'payments', verified: true }],
      open_questions: [],
      constraints: { caps: {}, prohibitions: [] },
      summary: { text: 'Review it', generated_from: ['goal'] },
      references: [],
      effects: [],
      provenance: [],
    };
    let attempt = 0;
    const answerTo = async (change: object) => {
      attempt += 1;
      const data = { ...thin, attempt, ...change };
      const message = {
        messageId: `${data.handoff_id}:${attempt}`,
        role: 'ROLE_USER',
        parts: [{ data, mediaType: 'application/vnd.holdfast.handoff.v2+json' }],
      };
      const task = await made.deliver(JSON.stringify(message));
      return task.artifacts?.[0]?.parts[0]?.data;
    };
    expect(await answerTo({ facts: rich.facts })).toMatchObject({ code: 'schema_invalid', final: true });
    expect(await answerTo(rich)).toMatchObject({ code: 'form_mismatch', final: true });
    expect(await answerTo({ thin: true })).toMatchObject({
      code: 'schema_invalid',
      fields: [{ path: 'thin' }],
      final: true,
    });
    expect(await triage.ledger.getCase(ref)).toMatchObject({ owner: triage.url, epoch: 1 });
    expect(await answerTo({})).toMatchObject({ accepted: true, epoch: 2 });
  });

  it('keeps an agent from starting where nothing reads its cases', async () => {
    await expect(start({ readers: { billing: null } })).rejects.toMatchObject({
      code: 'reader_missing',
      message: expect.stringContaining('kinds.refund.reader'),
    });
  });

  it('cannot be offered where nothing reads its cases', async () => {
    pair = null;
    const contract = reviewContract();
    const config = {
      agent: 'triage',
      url: 'http://127.0.0.1:4100',
      kinds: { refund: { system_of_record: 'payments', contracts: [contract.id] } },
      peers: [
        { url: 'http://127.0.0.1:4200', key: 'x'.repeat(43), contracts: [contract.id], skills: ['review'] },
      ],
      log: { level: 'silent' },
    };
    const triage = await openHoldfast({ dir: join(folder.path, 'triage'), config });
    try {
      triage.onHandoff(contract, {});
      const { ref } = await triage.openCase({ caseId: CASE, kind: 'refund' });
      const input = { ref, to: 'http://127.0.0.1:4200', contract: contract.id };
      await expect(triage.handOff(input)).rejects.toMatchObject({ code: 'reader_missing' });
      expect(await triage.ledger.listOffers('default', {})).toEqual([]);
    } finally {
      await triage.close();
    }
  });

  it('is refused in the configuration of a kind with separate ledgers, and by the sender', async () => {
    const contract = reviewContract();
    const config = {
      agent: 'triage',
      url: 'http://127.0.0.1:4100',
      kinds: { refund: { system_of_record: 'payments', mode: 'separate', contracts: [contract.id] } },
      peers: [
        { url: 'http://127.0.0.1:4200', key: 'x'.repeat(43), contracts: [contract.id], skills: ['review'] },
      ],
      log: { level: 'silent' },
    };
    const triage = await openHoldfast({ dir: join(folder.path, 'triage'), config });
    try {
      triage.onHandoff(contract, {});
      triage.onCase('refund', () => null);
      const { ref } = await triage.openCase({ caseId: CASE, kind: 'refund' });
      const input = { ref, to: 'http://127.0.0.1:4200', contract: contract.id };
      await expect(triage.handOff(input)).rejects.toMatchObject({ code: 'thin_separate' });
      await expect(triage.start({ port: 0 })).rejects.toMatchObject({
        code: 'config_invalid',
        message: expect.stringContaining('kinds.refund.contracts'),
      });
    } finally {
      await triage.close();
    }
  });

  it('says in its definition that nothing crosses', () => {
    const define = (change: object) => () => reviewContract(change);
    const naming = (path: string) =>
      expect.objectContaining({ code: 'contract_invalid', fields: [expect.objectContaining({ path })] });
    expect(define({ allow: ['goal'] })).toThrow(naming('allow'));
    const evidence = { min: 0, max: 1, mediaTypes: ['text/plain'], maxBytes: 1 };
    expect(define({ evidence })).toThrow(naming('evidence.max'));
    const constraints = { deadline: true, caps: [], prohibitions: [] };
    expect(define({ constraints })).toThrow(naming('constraints.deadline'));
    expect(define({ thin: 'yes', allow: ['constraints'] })).toThrow(naming('thin'));
    expect(reviewContract()).toMatchObject({ thin: true, id: 'refund-review/1' });
  });
});
