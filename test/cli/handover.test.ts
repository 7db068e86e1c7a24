import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Agent,
  CASE_FILE,
  CONTRACT,
  initPair,
  run,
  serve,
  TRANSCRIPT,
  temporaryFolder,
} from './support.js';

interface WholeCase {
  readonly facts: readonly { readonly key: string; readonly value: object }[];
}

describe('a handover by the command', () => {
  const folder = temporaryFolder();
  let triage: Agent;
  let billing: Agent;
  let running: { stop(): Promise<unknown> }[];

  beforeAll(async () => {
    ({ triage, billing } = await initPair(folder.path));
    running = [await serve(triage.dir), await serve(billing.dir)];
  });

  afterAll(async () => {
    await Promise.all(running.map((one) => one.stop()));
    folder.remove();
  });

  const at = (agent: Agent, ...argv: string[]) => run(...argv, '--dir', agent.dir, '--json');
  const send = (...more: string[]) =>
    at(triage, 'handoff', 'send', '--to', billing.url, '--contract', CONTRACT, ...more);
  const write = (caseId: string, change: (file: WholeCase) => object): string => {
    const file = JSON.parse(readFileSync(CASE_FILE, 'utf8'));
    const path = join(folder.path, `${caseId}.json`);
    writeFileSync(path, JSON.stringify(change({ ...file, case_id: caseId })));
    return path;
  };

  it('[R-061][R-063][R-075][R-076] moves the owner, and refuses the former one with a status of its own', async () => {
    expect((await at(triage, 'case', 'open', CASE_FILE)).json.case).toMatchObject({
      owner: triage.url,
      epoch: 1,
    });
    const sent = await send('--file', CASE_FILE, '--evidence', TRANSCRIPT, '--redact');
    expect(sent).toMatchObject({ exit: 0, json: { state: 'accepted', owner: billing.url, epoch: 2 } });

    expect((await at(billing, 'case', 'note', 'CASE-7001', 'taken over', '--epoch', '2')).exit).toBe(0);
    const stale = await at(triage, 'case', 'note', 'CASE-7001', 'retry', '--epoch', '1');
    expect(stale).toMatchObject({
      exit: 3,
      json: { error: { code: 'epoch_stale', data: { presented: 1, current: 2 } } },
    });
    const foreign = await at(triage, 'case', 'note', 'CASE-7001', 'retry', '--epoch', '2');
    expect(foreign).toMatchObject({ exit: 3, json: { error: { code: 'not_owner' } } });
    const shown = (await at(triage, 'case', 'show', 'CASE-7001')).json;
    expect(shown.notes.map(({ text }: { text: string }) => text)).toEqual(['taken over']);
    expect(shown.pointer).toEqual({
      case_id: 'CASE-7001',
      root: triage.url,
      status: 'handed_off',
      owner: billing.url,
    });
  });

  it('[R-102][R-127] holds the cap, the permitted operations and the keys of effects', async () => {
    const start = (key: string, operation: string, amount: string) =>
      at(
        billing,
        'effect',
        'start',
        'CASE-7001',
        '--epoch',
        '2',
        '--key',
        key,
        '--operation',
        operation,
        '--amount',
        amount,
      );
    expect((await start('refund-1', 'refund', '100.01 EUR')).json.error.code).toBe('cap_exceeded');
    expect((await start('publish-1', 'publish', '1.00 EUR')).json.error.code).toBe('operation_not_permitted');
    expect((await start('refund-pay_B', 'refund', '49.00 EUR')).exit).toBe(0);
    expect((await start('refund-pay_B', 'refund', '49.00 EUR')).json.error.code).toBe('effect_duplicate');
    expect((await start('refund-2', 'refund', '51.01 EUR')).json.error.code).toBe('cap_exceeded');
    const busy = await at(billing, 'case', 'close', 'CASE-7001', '--epoch', '2');
    expect(busy).toMatchObject({ exit: 9, json: { error: { code: 'case_busy' } } });
    const settle = ['effect', 'settle', 'CASE-7001', '--epoch', '2', '--key', 'refund-pay_B'];
    expect((await at(billing, ...settle, '--state', 'done', '--outcome', 're_1')).json.effect.state).toBe(
      'done',
    );
    expect((await at(billing, 'effect', 'list', 'CASE-7001')).json.effects).toHaveLength(1);
  });

  it('settles the one work item, closes the case and verifies the audit', async () => {
    const { work } = (await at(billing, 'work', 'list', '--state', 'open')).json;
    expect(work).toHaveLength(1);
    expect(work[0].envelope.case_id).toBe('CASE-7001');
    const done = await at(billing, 'work', 'done', work[0].id, '--result', '{"decision":"refunded"}');
    expect(done.json.work).toMatchObject({ state: 'done', result: { decision: 'refunded' } });
    const failed = await at(billing, 'work', 'fail', work[0].id);
    expect(failed).toMatchObject({ exit: 9, json: { error: { code: 'work_settled' } } });
    expect((await at(billing, 'case', 'close', 'CASE-7001', '--epoch', '2')).json.case.status).toBe('closed');
    const verified = await at(triage, 'audit', 'verify');
    expect(verified).toMatchObject({ exit: 0, json: { verified: true } });
    expect(verified.json.entries).toBeGreaterThan(8);
    expect((await at(triage, 'audit', 'verify', '--case', 'CASE-7001')).json.cases).toHaveLength(1);
  });

  it('[R-054] shows the receiving side what was handed over, and lets it read the evidence', async () => {
    const { work } = (await at(billing, 'work', 'list')).json;
    const shown = await at(billing, 'work', 'show', work[0].id);
    expect(shown.json.evidence).toMatchObject([
      { id: expect.stringMatching(/^art_\w+@1$/), filename: 'transcript.txt' },
    ]);
    const text = (await run('work', 'show', work[0].id, '--dir', billing.dir)).out;
    expect(text).toMatch(/^goal +Refund one of two identical charges$/m);
    expect(text).toMatch(/^account_id +acct_881 +auth +verified$/m);
    const [{ id, sha256 }] = shown.json.evidence;
    expect(text).toContain(id);
    expect((await at(billing, 'evidence', 'list')).json.artifacts).toMatchObject([{ sha256 }]);
    const out = join(folder.path, 'received.txt');
    expect((await at(billing, 'evidence', 'get', id, '--out', out)).exit).toBe(0);
    const bytes = readFileSync(out);
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256);
    expect((await run('evidence', 'get', sha256, '--dir', billing.dir)).out).toBe(bytes.toString());
    expect((await at(billing, 'evidence', 'get', id, '--out', out)).json.error.code).toBe('already_exists');
    expect((await at(triage, 'evidence', 'get', id)).json.error.code).toBe('evidence_file_missing');
    expect((await at(billing, 'work', 'show', 'work_none')).json.error.code).toBe('work_unknown');
    expect((await run('handoff', 'show', 'CASE-7001:2', '--dir', triage.dir)).out).toMatch(
      /^receipt +verified$/m,
    );
    const late = await run('handoff', 'void', 'CASE-7001:2', '--dir', triage.dir);
    expect(late.out).toMatch(/^Too late: it was accepted/);
  });

  it('[R-054][R-058][R-059] lets neither the phone number nor unrelated history out, and says what was kept back', async () => {
    const { offer } = (await at(triage, 'handoff', 'show', 'CASE-7001:2')).json;
    expect(offer.withheld).toEqual(
      expect.arrayContaining([
        { path: 'customer', rule: 'unknown_field' },
        { path: 'history', rule: 'unknown_field' },
        { path: 'facts.customer_phone', rule: 'not_in_contract' },
      ]),
    );
    const files = readdirSync(folder.path, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    expect(files.length).toBeGreaterThan(10);
    for (const entry of files) {
      const bytes = readFileSync(join(entry.parentPath, entry.name));
      for (const canary of ['5550 1234', 'jo@example.com', 'Tern 7', 'voucher']) {
        expect(bytes.includes(canary), `${canary} in ${entry.name}`).toBe(false);
      }
    }
  });

  it('reads an export anywhere, and sees that it was changed', async () => {
    const file = join(folder.path, 'audit.jsonl');
    expect((await at(triage, 'audit', 'export', '--out', file)).exit).toBe(0);
    expect((await at(triage, 'audit', 'export', '--out', file)).json.error.code).toBe('already_exists');
    expect(await run('audit', 'verify', '--file', file, '--json')).toMatchObject({
      exit: 0,
      json: { verified: true },
    });
    writeFileSync(file, readFileSync(file, 'utf8').replace('refund-pay_B', 'refund-pay_A'));
    const broken = await run('audit', 'verify', '--file', file, '--json');
    expect(broken).toMatchObject({ exit: 11, json: { verified: false, problem: 'tamper' } });
  });

  it('[R-064][R-090][R-105][R-106] shows a rejection as one, and a corrected attempt is judged afresh', async () => {
    const wrong = write('CASE-7002', (file) => ({
      ...file,
      facts: file.facts.map((fact) =>
        fact.key === 'payment_b' ? { ...fact, value: { ...fact.value, id: 'pay_A' } } : fact,
      ),
    }));
    await at(triage, 'case', 'open', wrong);
    const rejected = await send('--file', wrong, '--evidence', TRANSCRIPT, '--redact');
    expect(rejected).toMatchObject({
      exit: 6,
      json: { state: 'rejected', code: 'contract_refused', retryable: true },
    });
    expect((await at(triage, 'case', 'show', 'CASE-7002')).json.case).toMatchObject({
      owner: triage.url,
      epoch: 1,
    });
    const why = await at(triage, 'handoff', 'show', 'CASE-7002:2');
    expect(why.json.decision).toMatchObject({
      verdict: 'rejected',
      code: 'contract_refused',
      reason: rejected.json.reason,
      retryable: true,
    });
    const read = await run('handoff', 'show', 'CASE-7002:2', '--dir', triage.dir);
    expect(read.out).toContain(rejected.json.reason);
    expect(read.out).toMatch(/^retryable +yes/m);
    const late = await run('handoff', 'void', 'CASE-7002:2', '--dir', triage.dir);
    expect(late).toMatchObject({
      exit: 9,
      out: expect.stringMatching(/^Too late: it was rejected \(CASE-7002:2, attempt 1\)/),
    });
    expect((await at(triage, 'handoff', 'resend', 'CASE-7002:2')).json).toMatchObject({ state: 'rejected' });
    const right = write('CASE-7002', (file) => file);
    const accepted = await send('--file', right, '--evidence', TRANSCRIPT, '--redact');
    expect(accepted).toMatchObject({
      exit: 0,
      json: { state: 'accepted', epoch: 2, offer: { key: { attempt: 2 } } },
    });
    expect((await at(triage, 'handoff', 'list', '--case', 'CASE-7002')).json.offers).toHaveLength(2);
  });

  it('finds personal data in free text before anything is sent', async () => {
    const file = write('CASE-7003', (whole) => ({ ...whole, goal: 'Refund, call +49 30 5550 1234' }));
    await at(triage, 'case', 'open', file);
    const ran = await send('--file', file, '--evidence', TRANSCRIPT, '--redact');
    expect(ran).toMatchObject({
      exit: 2,
      json: { error: { code: 'personal_data', fields: [{ path: 'goal' }] } },
    });
    expect((await at(triage, 'handoff', 'list', '--case', 'CASE-7003')).json.offers).toEqual([]);
  });

  it('stores what seems to hold personal data as it is only where it is told to', async () => {
    const stored = await at(triage, 'evidence', 'add', TRANSCRIPT, '--artifact', 'raw', '--as-is');
    expect(stored.json).toMatchObject({ artifact: { version: 1 }, replaced: null });
    const redacted = await at(triage, 'evidence', 'add', TRANSCRIPT, '--artifact', 'raw', '--redact');
    expect(redacted.json).toMatchObject({ artifact: { artifactId: 'raw', version: 2 }, replaced: 2 });
    expect(
      (await at(triage, 'evidence', 'list')).json.artifacts.map(
        (one: { artifactId: string }) => one.artifactId,
      ),
    ).toContain('raw');
  });

  it('[R-053] revokes evidence, shows that it is revoked, and offers it no more', async () => {
    await at(triage, 'evidence', 'add', TRANSCRIPT, '--artifact', 'wrong', '--redact');
    const reason = ['--reason', 'it is of another customer'];
    expect(await at(triage, 'evidence', 'revoke', 'wrong')).toMatchObject({ exit: 2 });
    expect(await at(triage, 'evidence', 'revoke', 'wrong@2', ...reason)).toMatchObject({ exit: 2 });
    const revoked = await at(triage, 'evidence', 'revoke', 'wrong', ...reason);
    expect(revoked).toMatchObject({
      exit: 0,
      json: { artifacts: [{ artifactId: 'wrong', revoked: { reason: reason[1] } }], offers: [] },
    });
    const { artifacts } = (await at(triage, 'evidence', 'list')).json;
    expect(artifacts.find((one: { artifactId: string }) => one.artifactId === 'wrong')).toMatchObject({
      revoked: { reason: reason[1] },
    });
    const shown = (await run('evidence', 'list', '--dir', triage.dir)).out;
    expect(shown).toContain('REVOKED');
    expect(shown).toMatch(/^wrong .* \d{4}-\d\d-\d\dT\S+Z /m);
    await at(triage, 'case', 'open', '--id', 'CASE-7009', '--kind', 'refund');
    const file = join(folder.path, 'case-7009.json');
    writeFileSync(
      file,
      JSON.stringify({ ...JSON.parse(readFileSync(CASE_FILE, 'utf8')), case_id: 'CASE-7009' }),
    );
    const sent = await at(
      triage,
      ...[
        'handoff',
        'send',
        '--file',
        file,
        '--to',
        billing.url,
        '--contract',
        CONTRACT,
        '--artifact',
        'wrong',
      ],
    );
    expect(sent).toMatchObject({ exit: 2, json: { error: { code: 'evidence_revoked' } } });
    expect((await at(triage, 'handoff', 'list', '--case', 'CASE-7009')).json.offers).toEqual([]);
  });
});
