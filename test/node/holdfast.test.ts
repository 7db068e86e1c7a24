import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  accept,
  defineContract,
  EffectNotDone,
  type Holdfast,
  type OpenOptions,
  openHoldfast,
  parseCaseFile,
  refundDispute,
  reject,
} from '../../src/index.js';
import { type Agent, CASE_FILE, CONTRACT, initPair, temporaryFolder } from '../cli/support.js';

let folder: ReturnType<typeof temporaryFolder>;
let triageAgent: Agent;
let billingAgent: Agent;
let opened: Holdfast[];

beforeEach(async () => {
  folder = temporaryFolder();
  ({ triage: triageAgent, billing: billingAgent } = await initPair(folder.path));
  opened = [];
});

afterEach(async () => {
  await Promise.all(opened.map((holdfast) => holdfast.close()));
  folder.remove();
});

async function open(agent: Agent, options: OpenOptions = {}): Promise<Holdfast> {
  const holdfast = await openHoldfast({ dir: agent.dir, ...options });
  opened.push(holdfast);
  return holdfast;
}

async function offer(triage: Holdfast) {
  const { ref } = await triage.openCase({ caseId: 'CASE-7001', kind: 'refund' });
  const { artifactId } = await triage.addEvidence(Buffer.from('charged twice'), {
    filename: 'claim.txt',
    mediaType: 'text/plain',
  });
  return {
    ref,
    caseFile: parseCaseFile(readFileSync(CASE_FILE)),
    to: `${billingAgent.url}/`,
    contract: CONTRACT,
    evidence: [{ artifactId }],
  };
}

const refund = { key: 'refund-pay_B', operation: 'refund', amount: { amount: '49.00', currency: 'EUR' } };

describe('the library', () => {
  it('[R-063][R-075][R-077] hands a case to a handler, which works on it under the new epoch', async () => {
    const triage = await open(triageAgent);
    const billing = await open(billingAgent);
    const seen: unknown[] = [];
    billing.onHandoff(refundDispute, {
      check: ({ facts, evidence }) => {
        seen.push(facts.account_id, evidence.length);
        return accept();
      },
      work: async (work) => {
        const [evidence] = work.evidence;
        seen.push(new TextDecoder().decode(await evidence?.read()));
        const { result } = await work.effect({
          ...refund,
          perform: async (key) => `re-${key}`,
          outcome: (id) => id,
        });
        await work.note(`refunded as ${result}`);
        await work.done({ decision: 'refunded' });
      },
    });
    await triage.start();
    await billing.start();
    const input = await offer(triage);
    const result = await triage.handOff(input);
    expect(result).toMatchObject({ state: 'accepted', owner: billing.url, epoch: 2 });

    await expect
      .poll(async () => (await billing.ledger.listWork('default', { state: 'done' })).length, {
        timeout: 5_000,
      })
      .toBe(1);
    expect(seen).toEqual(['acct_881', 1, 'charged twice']);
    expect(await billing.ledger.listEffects(input.ref)).toMatchObject([
      { key: 'refund-pay_B', state: 'done', outcome: 're-refund-pay_B', epoch: 2 },
    ]);
    await expect(triage.note({ ref: input.ref, epoch: 1, text: 'late' })).rejects.toMatchObject({
      code: 'epoch_stale',
    });
    expect(await triage.statusPointer(input.ref)).toEqual({
      case_id: 'CASE-7001',
      root: triage.url,
      status: 'handed_off',
      owner: billing.url,
    });
    expect(await billing.closeCase({ ref: input.ref, epoch: 2 })).toMatchObject({ status: 'closed' });
  });

  it("[R-103][R-106] tells the sender what the receiver's own records say against it", async () => {
    const triage = await open(triageAgent);
    const billing = await open(billingAgent, {
      handlers: {
        [CONTRACT]: { check: () => reject('records_disagree', 'There is no payment pay_B here.') },
      },
    });
    await triage.start();
    await billing.start();
    const result = await triage.handOff(await offer(triage));
    expect(result).toMatchObject({
      state: 'rejected',
      code: 'records_disagree',
      reason: 'There is no payment pay_B here.',
    });
  });

  it('starts interrupted work again when it starts', async () => {
    const triage = await open(triageAgent);
    const first = await open(billingAgent);
    first.onHandoff(CONTRACT, {
      work: async () => {
        throw new Error('the process is about to end');
      },
    });
    await triage.start();
    await first.start();
    await triage.handOff(await offer(triage));
    await first.close();
    const second = await open(billingAgent);
    second.onHandoff(CONTRACT, { work: async (work) => void (await work.done({ decision: 'refunded' })) });
    await second.start();
    await expect
      .poll(async () => (await second.ledger.listWork('default', { state: 'done' })).length, {
        timeout: 5_000,
      })
      .toBe(1);
  });

  it('[R-127] settles effects by what is known of them', async () => {
    const { ref } = await (await open(triageAgent)).openCase({ caseId: 'CASE-7002', kind: 'refund' });
    const [triage] = opened as [Holdfast];
    await expect(triage.effect({ ref, epoch: 1, ...refund, perform: async () => 'x' })).rejects.toMatchObject(
      {
        code: 'operation_not_permitted',
      },
    );
    const file = join(triageAgent.dir, 'holdfast.yaml');
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace('"*": [refund]', `"*": [refund]\n        "${triage.url}": [refund]`),
    );
    const permitted = await open(triageAgent);
    await permitted.applyKinds({ replace: true });
    const other = (await permitted.openCase({ caseId: 'CASE-7003', kind: 'refund' })).ref;
    const effect = (perform: () => Promise<string>) =>
      permitted.effect({ ref: other, epoch: 1, ...refund, perform });
    await expect(effect(() => Promise.reject(new EffectNotDone('declined')))).rejects.toThrow('declined');
    await expect(effect(() => Promise.reject(new Error('timed out')))).rejects.toMatchObject({
      code: 'outcome_unknown',
    });
    await expect(effect(async () => 're_2')).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(await permitted.ledger.listEffects(other)).toMatchObject([{ state: 'unknown' }]);
    await permitted.settleEffect({ ref: other, epoch: 1, key: refund.key, state: 'done', outcome: 're_1' });
    expect(await permitted.ledger.listEffects(other)).toMatchObject([{ state: 'done', outcome: 're_1' }]);
  });

  it('[R-080] gives the business system the same key for the same effect, whatever happened to the first call', async () => {
    const file = join(triageAgent.dir, 'holdfast.yaml');
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace('"*": [refund]', `"${triageAgent.url}": [refund]`));
    const triage = await open(triageAgent);
    const { ref } = await triage.openCase({ caseId: 'CASE-7004', kind: 'refund' });
    const records = new Map<string, string>();
    const refundOnce = (key: string) => {
      const record = records.get(key) ?? `re_${records.size + 1}`;
      records.set(key, record);
      return record;
    };
    const lost = triage.effect({
      ...refund,
      ref,
      epoch: 1,
      perform: async (key) => {
        refundOnce(key);
        throw new Error('the reply was lost');
      },
    });
    await expect(lost).rejects.toMatchObject({ code: 'outcome_unknown' });
    const again = await triage.effect({
      ...refund,
      ref,
      epoch: 1,
      perform: async (key) => refundOnce(key),
      reconcile: async (key) => ({ outcome: records.get(key) ?? null }),
    });
    expect(again).toMatchObject({ row: { state: 'done', outcome: 're_1' }, result: null });
    expect([...records]).toEqual([['refund-pay_B', 're_1']]);
  });

  it('[R-103] loads its handlers from a module, as the example does', async () => {
    const file = join(billingAgent.dir, 'holdfast.yaml');
    const module = join(dirname(CASE_FILE), 'billing.mjs');
    writeFileSync(file, `${readFileSync(file, 'utf8')}handlers: ${module}\n`);
    const triage = await open(triageAgent);
    const billing = await open(billingAgent);
    await triage.start();
    await billing.start();
    const input = await offer(triage);
    const facts = input.caseFile.facts.map((fact) =>
      fact.key === 'payment_b' ? { ...fact, value: { ...(fact.value as object), id: 'pay_C' } } : fact,
    );
    const wrong = await triage.handOff({ ...input, caseFile: { ...input.caseFile, facts } });
    expect(wrong).toMatchObject({ state: 'rejected', reason: 'There is no payment pay_C here.' });
    expect(await triage.handOff(input)).toMatchObject({ state: 'accepted' });
    await expect
      .poll(async () => billing.ledger.listWork('default', { state: 'done' }), { timeout: 5_000 })
      .toMatchObject([{ result: '{"decision":"refunded","refund_id":"re_1"}' }]);
    expect(await billing.ledger.listEffects(input.ref)).toMatchObject([
      { key: 'refund-pay_B', state: 'done' },
    ]);
  });

  it('takes a contract that is made in code', async () => {
    const loan = defineContract({ ...refundDispute, name: 'loan-transfer', version: 2 });
    const billing = await open(billingAgent);
    billing.onHandoff(loan, {});
    expect(() => billing.onHandoff('mortgage/1', {})).toThrow(
      expect.objectContaining({ code: 'contract_missing' }),
    );
    billing.onHandoff(CONTRACT, { check: () => accept() });
    expect(() => billing.onHandoff(CONTRACT, {})).toThrow(expect.objectContaining({ code: 'usage' }));
    const other = { ...refundDispute, skill: { ...refundDispute.skill, id: 'other' } };
    expect(() => billing.onHandoff(other, {})).toThrow(expect.objectContaining({ code: 'usage' }));
    await billing.start();
    expect(() => billing.onHandoff(loan, {})).toThrow(/before start/);
    // What was refused a second time has not replaced the first one for sending either.
    await expect(billing.checkPeer(triageAgent.url, CONTRACT)).rejects.toMatchObject({
      code: 'peer_unreachable',
    });
    const card = await (await fetch(`${billing.url}/.well-known/agent-card.json`)).json();
    expect(card).toMatchObject({ name: 'billing', skills: [{ id: 'billing' }] });
  });

  it('[R-001] refuses a kind that differs from the one in the ledger', async () => {
    await (await open(triageAgent)).applyKinds();
    const file = join(billingAgent.dir, 'holdfast.yaml');
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace('system_of_record: payments', 'system_of_record: crm'),
    );
    const billing = await open(billingAgent);
    await expect(billing.start()).rejects.toMatchObject({ code: 'kind_conflict', data: { kind: 'refund' } });
    expect(await billing.ledger.getKind('default', 'refund')).toMatchObject({ systemOfRecord: 'payments' });
  });

  it('refuses a port that is taken, and still closes', async () => {
    const triage = await open(triageAgent);
    const billing = await open(billingAgent);
    await triage.start();
    await expect(billing.start({ port: triageAgent.port })).rejects.toMatchObject({ code: 'port_taken' });
    await expect(triage.start()).rejects.toMatchObject({ code: 'usage' });
  });

  it('warns when its URL means nothing to those it listens for', async () => {
    const warned: unknown[] = [];
    const logger = {
      info() {},
      error() {},
      warn: (_: unknown, message: string) => warned.push(message),
    };
    const triage = await open(triageAgent, { logger });
    await triage.start({ port: 0 });
    expect(warned).toEqual(['peers reach this node at its url, which names another port']);
  });

  it('opens from an object instead of a file', async () => {
    const holdfast = await openHoldfast({
      dir: join(folder.path, 'in-code'),
      config: { agent: 'in-code', url: 'http://127.0.0.1:4999', log: { level: 'silent' } },
    });
    opened.push(holdfast);
    expect(holdfast.config.ledger).toBe('ledger.db');
    expect(holdfast.identity.thumbprint).toMatch(/^[\w-]{43}$/);
    await expect(openHoldfast({ dir: folder.path, config: { agent: 'x' } })).rejects.toMatchObject({
      code: 'config_invalid',
    });
  });

  it("takes no result as done that is not the contract's output", async () => {
    const triage = await open(triageAgent);
    const billing = await open(billingAgent);
    const refused: unknown[] = [];
    billing.onHandoff(CONTRACT, {
      work: async ({ done }) => {
        for (const result of [undefined, { foo: 1 }, { decision: 'maybe' }]) {
          await done(result).catch(({ code, fields }) => refused.push([code, fields[0].path]));
        }
      },
    });
    await triage.start();
    await billing.start();
    await triage.handOff(await offer(triage));
    await expect.poll(() => refused.length, { timeout: 5_000 }).toBe(3);
    expect(refused).toEqual([
      ['output_invalid', 'result'],
      ['output_invalid', 'result.decision'],
      ['output_invalid', 'result.decision'],
    ]);
    const [item] = await billing.ledger.listWork('default', { state: 'open' });
    const work = { workId: item?.id ?? '' };
    await expect(billing.settleWork({ ...work, state: 'done' })).rejects.toMatchObject({
      code: 'output_invalid',
      fields: [{ path: 'result', problem: 'is required' }],
    });
    await expect(billing.settleWork({ ...work, state: 'done', result: 1n })).rejects.toMatchObject({
      code: 'usage',
    });
    expect(await billing.ledger.listWork('default', { state: 'open' })).toHaveLength(1);
    const failed = { ...work, state: 'failed', result: { why: 'anything' } } as const;
    expect(await billing.settleWork(failed)).toMatchObject({ state: 'failed', result: '{"why":"anything"}' });
  });

  it('hands over a plain case file, without evidence where the contract wants none', async () => {
    const plain = defineContract({
      ...refundDispute,
      evidence: { ...refundDispute.evidence, min: 0 },
    });
    const triage = await open(triageAgent);
    const billing = await open(billingAgent);
    triage.onHandoff(plain, {});
    billing.onHandoff(plain, {});
    await triage.start();
    await billing.start();
    const { evidence, ...input } = await offer(triage);
    const file = JSON.parse(readFileSync(CASE_FILE, 'utf8'));
    await expect(triage.handOff({ ...input, caseFile: { ...file, goal: 5 } })).rejects.toMatchObject({
      code: 'case_file_invalid',
      fields: [{ path: 'goal' }],
    });
    const accepted = await triage.handOff({ ...input, caseFile: { ...file, customer_name: 'CANARY' } });
    expect(accepted).toMatchObject({
      state: 'accepted',
      offer: { message: expect.not.stringContaining('CANARY') },
    });
  });

  it('names the argument that is wrong, before anything is stored', async () => {
    const triage = await open(triageAgent);
    const { ref, ...input } = await offer(triage);
    // biome-ignore lint/suspicious/noExplicitAny: what a caller without a compiler can do
    const js = triage as any;
    const amount = '49.00 EUR';
    const effect = { ref, epoch: 1, key: 'k', operation: 'refund', perform: async () => 'x' };
    const { perform, ...without } = effect;
    const calls: [() => unknown, string][] = [
      [() => js.openCase('X'), 'argument'],
      [() => js.openCase(), 'argument'],
      [() => js.openCase({ kind: 'refund' }), 'caseId'],
      [() => js.note({ ref: {}, epoch: 1, text: 'x' }), 'ref.tenant'],
      [() => js.note({ ref, epoch: 1 }), 'text'],
      [() => js.closeCase(ref), 'ref'],
      [() => js.handOff({}), 'ref'],
      [() => js.handOff({ ...input, ref, caseFile: '{}' }), 'caseFile'],
      [() => js.handOff({ ...input, ref, evidence: 'art_1' }), 'evidence'],
      [() => js.effect(without), 'perform'],
      [() => js.effect({ ...effect, amount }), 'amount'],
      [() => js.startEffect({ ...effect, amount: { amount: 49, currency: 'EUR' } }), 'amount.amount'],
      [() => js.settleEffect({ ...effect, state: 'ok' }), 'state'],
      [() => js.settleWork('work_1'), 'argument'],
      [() => js.statusPointer('CASE-7001'), 'argument'],
      [() => js.addEvidence('text', { filename: 'a.txt', mediaType: 'text/plain' }), 'content'],
      [() => js.checkPeer(), 'url'],
      [() => js.resend('CASE-7001:2'), 'argument'],
      [() => js.voidOffer({}), 'key.tenant'],
      [() => js.caseRef(), 'caseId'],
      [() => js.onHandoff(CONTRACT, { check: 5 }), 'handler.check'],
      [() => js.onHandoff(5, {}), 'contract'],
      [() => openHoldfast('desk' as never), 'argument'],
      [() => openHoldfast({ dir: 5 } as never), 'dir'],
    ];
    const before = await triage.ledger.snapshot(ref);
    for (const [call, path] of calls) {
      const error = await Promise.resolve()
        .then(call)
        .catch((reason: unknown) => reason);
      expect(error, `${call}`).toMatchObject({ code: 'usage', message: expect.stringContaining(path) });
      expect((error as { fields: { path: string }[] }).fields[0]?.path, `${call}`).toBe(path);
    }
    expect(await triage.ledger.snapshot(ref)).toEqual(before);
    expect(await triage.ledger.listCases('default')).toHaveLength(1);
  });
});
