import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LossyProxy, lossyProxy } from '../lossy-proxy.js';
import {
  type Agent,
  CASE_FILE,
  CONTRACT,
  initPair,
  letOpenerAct,
  run,
  serve,
  TRANSCRIPT,
  temporaryFolder,
} from './support.js';

let folder: ReturnType<typeof temporaryFolder>;
let triage: Agent;
let billing: Agent;
let stop: (() => unknown)[];

beforeEach(async () => {
  folder = temporaryFolder();
  stop = [];
  ({ triage, billing } = await initPair(folder.path));
  letOpenerAct(triage, triage, billing);
});

afterEach(async () => {
  await Promise.all(stop.map((end) => end()));
  folder.remove();
});

const at = (agent: Agent, ...argv: string[]) => run(...argv, '--dir', agent.dir, '--json');
const why = ['--reason', 'nobody answers'];
const take = (person: string, epoch: number, agent = triage) =>
  at(agent, 'case', 'take', 'CASE-7001', '--person', person, '--epoch', String(epoch), ...why);
const note = (epoch: number, ...more: string[]) =>
  at(triage, 'case', 'note', 'CASE-7001', 'text', '--epoch', String(epoch), ...more);
const owner = async () => {
  const { case: row } = (await at(billing, 'case', 'show', 'CASE-7001')).json;
  return [row.owner, row.epoch];
};
const person = (id: string, agent = triage) => `person:${id}@${agent.url}`;
const send = (file: string) =>
  at(
    ...([triage, 'handoff', 'send', '--file', file, '--to', billing.url, '--contract', CONTRACT] as const),
    ...['--evidence', TRANSCRIPT, '--redact'],
  );

async function serveBoth(): Promise<LossyProxy> {
  const [from, to] = [await serve(triage.dir), await serve(billing.dir, '--port', '0')];
  const proxy = await lossyProxy(billing.port, () => to.port);
  stop = [() => from.stop(), () => to.stop(), () => proxy.close()];
  return proxy;
}

describe('a person who takes a case', () => {
  it('[R-062][R-137] owns it, passes it on and gives it back, and each former owner is refused', async () => {
    await at(triage, 'case', 'open', CASE_FILE);
    const taken = await take('ann', 1);
    expect(taken).toMatchObject({ exit: 0, json: { case: { owner: person('ann'), epoch: 2 } } });
    expect(await note(1)).toMatchObject({ exit: 3, json: { error: { code: 'epoch_stale' } } });
    expect(await note(2)).toMatchObject({ exit: 3, json: { error: { code: 'not_owner' } } });
    expect(await note(2, '--person', 'bob')).toMatchObject({
      exit: 3,
      json: { error: { code: 'not_owner' } },
    });
    expect((await note(2, '--person', 'ann')).json.note).toMatchObject({ writer: person('ann'), epoch: 2 });
    expect((await at(billing, 'case', 'show', 'CASE-7001')).json.pointer.status).toBe('handed_off');
    expect((await at(triage, 'case', 'show', 'CASE-7001')).json.pointer.status).toBe('owned_here');
    expect((await at(triage, 'case', 'list', '--person', 'ann')).json.cases).toHaveLength(1);
    expect((await at(triage, 'case', 'list', '--person', 'bob')).json.cases).toEqual([]);

    const pass = ['case', 'reassign', 'CASE-7001', '--person', 'ann', '--to', 'bob', '--epoch', '2', ...why];
    expect((await at(triage, ...pass)).json.case).toMatchObject({ owner: person('bob'), epoch: 3 });
    expect(await at(triage, ...pass)).toMatchObject({ exit: 3, json: { error: { code: 'epoch_stale' } } });
    const back = await run(
      ...['case', 'return', 'CASE-7001', '--person', 'bob', '--epoch', '3', ...why, '--dir', triage.dir],
    );
    expect(back).toMatchObject({
      exit: 0,
      out: `${triage.url} owns CASE-7001 (root ${triage.url}) at epoch 4.\n`,
    });
    expect((await note(4)).exit).toBe(0);

    await take('ann', 4);
    const close = ['case', 'close', 'CASE-7001', '--epoch', '5'];
    expect((await at(triage, ...close)).exit).toBe(3);
    expect((await at(triage, ...close, '--person', 'ann')).json.case.status).toBe('closed');
    const { entries } = (await at(triage, 'audit', 'export', '--case', 'CASE-7001')).json;
    const changes = entries.filter(({ type }: { type: string }) => type === 'owner_changed');
    expect(
      changes.map(({ actor, data }: { actor: string; data: { change: string } }) => [actor, data.change]),
    ).toEqual([
      [person('ann'), 'takeover'],
      [person('ann'), 'reassignment'],
      [person('bob'), 'return'],
      [person('ann'), 'takeover'],
    ]);
    for (const { data } of changes) expect(data.reason).toBe('nobody answers');
    expect((await at(triage, 'audit', 'verify')).json.verified).toBe(true);
  });

  it('[R-137] hands it on by giving it back to the agent, and the receiver sees nothing of it', async () => {
    await serveBoth();
    await at(triage, 'case', 'open', CASE_FILE);
    await take('ann', 1);
    const blocked = await send(CASE_FILE);
    expect(blocked).toMatchObject({ exit: 3, json: { error: { code: 'not_owner' } } });
    await at(triage, 'case', 'return', 'CASE-7001', '--person', 'ann', '--epoch', '2', ...why);
    expect(await send(CASE_FILE)).toMatchObject({ exit: 0, json: { state: 'accepted', epoch: 4 } });
  });

  it("[R-133] takes at the owner's node or at the root, and nowhere else", async () => {
    await serveBoth();
    await at(triage, 'case', 'open', CASE_FILE);
    expect(await take('carol', 1, billing)).toMatchObject({
      exit: 3,
      json: { error: { code: 'not_owner' } },
    });
    await send(CASE_FILE);
    const [{ id }] = (await at(billing, 'work', 'list')).json.work;
    expect((await take('carol', 2, billing)).json.case).toMatchObject({
      owner: person('carol', billing),
      epoch: 3,
    });
    expect((await at(billing, 'work', 'list', '--state', 'superseded')).json.work).toMatchObject([{ id }]);
    expect(await at(billing, 'work', 'done', id, '--result', '{"decision":"refunded"}')).toMatchObject({
      exit: 3,
      json: { error: { code: 'epoch_stale' } },
    });
    // The node named in the owner is the only one that acts for her; the root may take the case itself.
    expect(await note(3, '--person', 'carol')).toMatchObject({
      exit: 3,
      json: { error: { code: 'not_owner' } },
    });
    expect((await take('ann', 3)).json.case).toMatchObject({ owner: person('ann'), epoch: 4 });
    expect((await at(triage, 'audit', 'verify')).json.verified).toBe(true);
  });
});

describe('an escalation', () => {
  it('[R-062][R-098][R-137] gives a rejected case to a person; until then the agent owns it', async () => {
    await serveBoth();
    const record = JSON.parse(readFileSync(CASE_FILE, 'utf8'));
    const facts = record.facts.map((fact: { key: string; value: object }) =>
      fact.key === 'payment_b' ? { ...fact, value: { ...fact.value, id: 'pay_A' } } : fact,
    );
    const wrong = join(folder.path, 'wrong.json');
    writeFileSync(wrong, JSON.stringify({ ...record, facts }));
    await at(triage, 'case', 'open', wrong);
    expect((await send(wrong)).json).toMatchObject({ state: 'rejected' });
    expect(await owner()).toEqual([triage.url, 1]);

    const escalate = ['handoff', 'escalate', 'CASE-7001:2', '--person', 'ann', ...why];
    expect(await at(triage, ...escalate)).toMatchObject({
      exit: 0,
      json: { case: { owner: person('ann'), epoch: 2 } },
    });
    expect(await owner()).toEqual([person('ann'), 2]);
    expect(await at(triage, ...escalate)).toMatchObject({
      exit: 3,
      json: {
        error: {
          code: 'epoch_stale',
          message: expect.stringMatching(
            /^Too late: person:ann@\S+ owns CASE-7001 now, at epoch 2; the offer was made at epoch 1/,
          ),
        },
      },
    });
    const { entries } = (await at(triage, 'audit', 'export', '--case', 'CASE-7001')).json;
    expect(entries.at(-2)).toMatchObject({
      type: 'owner_changed',
      actor: triage.url,
      data: { change: 'escalation', to: person('ann'), reason: 'nobody answers' },
    });
    expect((await at(triage, 'audit', 'verify')).json.verified).toBe(true);
  });

  it('[R-062][R-098] voids an offer that nobody decides, so that it comes too late', async () => {
    const proxy = await serveBoth();
    await at(triage, 'case', 'open', CASE_FILE);
    proxy.lose('requests');
    expect((await send(CASE_FILE)).json).toMatchObject({ state: 'open' });
    const escalated = await at(triage, 'handoff', 'escalate', 'CASE-7001:2', '--person', 'ann', ...why);
    expect(escalated).toMatchObject({ exit: 0, json: { case: { owner: person('ann'), epoch: 2 } } });
    proxy.lose('nothing');
    const late = await at(triage, 'handoff', 'resend', 'CASE-7001:2');
    expect(late).toMatchObject({ exit: 9, json: { state: 'withdrawn' } });
    expect(await owner()).toEqual([person('ann'), 2]);
    expect((await at(billing, 'work', 'list')).json.work).toEqual([]);
    expect((await at(triage, 'audit', 'verify')).json.verified).toBe(true);
  });

  it('comes too late for a case that was accepted', async () => {
    await serveBoth();
    await at(triage, 'case', 'open', CASE_FILE);
    await send(CASE_FILE);
    const late = await run(
      ...['handoff', 'escalate', 'CASE-7001:2', '--person', 'ann', ...why, '--dir', triage.dir],
    );
    expect(late).toMatchObject({
      exit: 9,
      err: expect.stringMatching(/^holdfast: Too late: .* accepted it .*\[offer_decided\]/),
    });
    expect(await owner()).toEqual([billing.url, 2]);
  });
});

const start = (key: string) =>
  at(
    ...([triage, 'effect', 'start', 'CASE-7001', '--epoch', '1', '--key', key] as const),
    ...['--operation', 'refund', '--amount', '10.00 EUR'],
  );
const settle = (key: string, state: string, ...more: string[]) =>
  at(
    ...([triage, 'effect', 'settle', 'CASE-7001', '--epoch', '1', '--key', key, '--state', state] as const),
    ...more,
  );

describe('attention', () => {
  const resolve = (...more: string[]) => at(triage, 'attention', 'resolve', 'CASE-7001', ...more);
  const found = ['--person', 'ann', '--reason', 'found in the payments console'];

  beforeEach(async () => {
    await at(triage, 'case', 'open', CASE_FILE);
    await start('refund-1');
    await settle('refund-1', 'unknown');
  });

  it('means its list, shows what is safe to do, and is done once a person has said what they found', async () => {
    const listed = await at(triage, 'attention');
    expect(listed.json.items).toMatchObject([{ what: 'effect_unknown', data: { key: 'refund-1' } }]);
    expect((await at(triage, 'attention', 'list')).json).toEqual(listed.json);
    expect((await run('attention', '--dir', triage.dir)).out).toMatch(/^CASE .*\nCASE-7001 +effect unknown/);

    const shown = await run('attention', 'show', 'CASE-7001', '--dir', triage.dir);
    expect(shown.out).toMatch(/effect_started .*\n.*effect_settled .* unknown/);
    expect(shown.out).toMatch(/^1\. Look up in the business system, under the idempotency key refund-1,/m);
    const { commands, history, safe } = (await at(triage, 'attention', 'show', 'CASE-7001')).json;
    expect(history.map(({ type }: { type: string }) => type)).toEqual(['effect_started', 'effect_settled']);
    expect(safe).toHaveLength(4);

    // The command that it prints is the one that settles it.
    const said = { REFERENCE: 're_881', ID: 'ann', TEXT: 'found in the payments console' };
    const words = [...commands[0].matchAll(/"([^"]*)"|(\S+)/g)].map(([, a, b]: string[]) => a ?? b ?? '');
    const argv = words.slice(1).map((word) => said[word as keyof typeof said] ?? word);
    const done = await at(triage, ...argv, '--minutes', '12', '--record', 'payments=re_881', 'crm=C-1/2');
    expect(done).toMatchObject({ exit: 0, json: { effect: { state: 'done', outcome: 're_881' } } });
    expect((await at(triage, 'attention')).json.items).toEqual([]);
    const { entries } = (await at(triage, 'audit', 'export', '--case', 'CASE-7001')).json;
    expect(entries.at(-1).data).toEqual({
      key: 'refund-1',
      state: 'done',
      outcome: 're_881',
      by: person('ann'),
      reason: 'found in the payments console',
      minutes: 12,
      records: [
        { name: 'payments', id: 're_881' },
        { name: 'crm', id: 'C-1/2' },
      ],
    });
    expect((await at(triage, 'audit', 'verify')).json.verified).toBe(true);
  });

  it('takes the proof that nothing happened, after which the key may start again', async () => {
    expect((await resolve('--state', 'failed', ...found)).json.effect.state).toBe('failed');
    expect((await start('refund-1')).exit).toBe(0);
    // What is on its way again is no longer what was found out about.
    expect(await resolve('--state', 'failed', ...found)).toMatchObject({
      json: { error: { code: 'not_found' } },
    });
  });

  it('asks which, where several wait', async () => {
    await start('refund-2');
    await settle('refund-2', 'unknown');
    expect(await resolve('--state', 'failed', ...found)).toMatchObject({
      exit: 2,
      json: { error: { code: 'usage', message: expect.stringContaining('--key: refund-1, refund-2.') } },
    });
    expect((await resolve('--state', 'failed', '--key', 'refund-2', ...found)).exit).toBe(0);
    expect((await at(triage, 'attention', 'show', 'CASE-7001')).json.item.data.key).toBe('refund-1');
  });

  it('leaves it to the owner: a person who owns the case settles, and others take it first', async () => {
    await take('ann', 1);
    const { commands } = (await at(triage, 'attention', 'show', 'CASE-7001')).json;
    expect(commands[0]).toMatch(/^holdfast attention resolve CASE-7001 --key refund-1/);
    const elsewhere = (await at(billing, 'attention', 'show', 'CASE-7001')).json;
    expect(elsewhere.commands[0]).toBe(`at the agent ${triage.url}, which can act for the owner:`);
    const bob = await resolve('--state', 'failed', '--person', 'bob', '--reason', 'x');
    expect(bob).toMatchObject({ exit: 3, json: { error: { code: 'not_owner' } } });
    const outside = await at(billing, 'attention', 'resolve', 'CASE-7001', '--state', 'failed', ...found);
    expect(outside).toMatchObject({ exit: 3, json: { error: { code: 'not_owner' } } });
    expect((await resolve('--state', 'failed', ...found)).exit).toBe(0);
    // Without a word of how it was found, as any owner settles.
    await at(triage, 'case', 'return', 'CASE-7001', '--person', 'ann', '--epoch', '2', ...why);
    await at(
      ...([triage, 'effect', 'start', 'CASE-7001', '--epoch', '3', '--key', 'refund-3'] as const),
      ...['--operation', 'refund', '--amount', '10.00 EUR'],
    );
    expect(await take('ann', 3)).toMatchObject({ exit: 9, json: { error: { code: 'effect_in_flight' } } });
    const late = ['effect', 'settle', 'CASE-7001', '--key', 'refund-3', '--state', 'unknown'];
    await at(triage, ...late, '--epoch', '3');
    await take('ann', 3);
    const done = ['--epoch', '4', '--person', 'ann', '--outcome', 're_3'];
    const settled = await at(triage, ...late.slice(0, -1), 'done', ...done);
    expect(settled.json.effect).toMatchObject({ state: 'done', outcome: 're_3' });
  });
});

describe('what a person may not say', () => {
  beforeEach(async () => {
    await at(triage, 'case', 'open', CASE_FILE);
    await start('refund-1');
    await settle('refund-1', 'unknown');
  });

  const change = (...more: string[]) => run('case', 'take', 'CASE-7001', ...more, '--dir', triage.dir);

  it.each([
    [['--person', 'Ann', '--epoch', '1', ...why], /Not the id of a person: "Ann"/],
    [['--person', '', '--epoch', '1', ...why], /person must not be empty/],
    [['--person', 'ann@x', '--epoch', '1', ...why], /Not the id of a person/],
    [['--person', `${'a'.repeat(65)}`, '--epoch', '1', ...why], /Not the id of a person/],
    [['--person', 'ann', '--epoch', '0', ...why], /--epoch is a whole number/],
    [['--person', 'ann', '--epoch', '1', '--reason', ' '], /reason must not be empty/],
    [['--person', 'ann', '--epoch', '1', '--reason', 'x'.repeat(501)], /reason must be at most 500/],
    [['--person', 'ann', '--epoch', '1', '--reason', 'a\nb'], /A reason is one line/],
    [
      ['--person', 'ann', '--epoch', '1', '--reason', 'call +49 30 5550 1234'],
      /^holdfast: A reason stands in the audit, which keeps no personal data, .*\n?.*Say why without it\..*\[personal_data\]/,
    ],
    [['--person', 'ann', '--epoch', '1'], /equired option '--reason/],
    [['--person', 'ann', ...why], /equired option '--epoch/],
    [['--epoch', '1', ...why], /equired option '--person/],
  ])('%j', async (argv, message) => {
    expect(await change(...argv)).toMatchObject({ exit: 2, err: expect.stringMatching(message) });
    expect(await owner()).toEqual([triage.url, 1]);
  });

  it.each([
    [['--state', 'done'], /--state done and the --outcome/],
    [['--state', 'done', '--outcome', ' '], /--state done and the --outcome/],
    [['--state', 'failed', '--outcome', 're_1'], /no outcome/],
    [['--state', 'unknown'], /An unknown effect is settled/],
    [[], /An unknown effect is settled/],
    [['--state', 'failed', '--minutes', '1.5'], /--minutes is a whole number/],
    [['--state', 'failed', '--record', 'payments'], /--record is NAME=ID/],
    [['--state', 'failed', '--record', '=x'], /--record is NAME=ID/],
    [['--state', 'failed', '--key', 'other'], /Nothing about other on CASE-7001 waits for a person/],
    [['--state', 'failed', '--kind', 'refund'], /are for a quarantined case/],
    [['--state', 'failed', '--root', 'http://127.0.0.1:1'], /Nothing about CASE-7001 waits/],
  ])('of what they settle: %j', async (argv, message) => {
    const said = ['--person', 'ann', '--reason', 'found', '--dir', triage.dir];
    expect(await run('attention', 'resolve', 'CASE-7001', ...argv, ...said)).toMatchObject({
      exit: 2,
      err: expect.stringMatching(message),
    });
    expect((await at(triage, 'attention')).json.items).toHaveLength(1);
  });
});
