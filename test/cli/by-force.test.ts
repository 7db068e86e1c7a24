import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { initPair, run, type ServedPair, servePair, temporaryFolder } from './support.js';

const why = ['--reason', 'billing is gone for good'];

describe('a case that a person takes by force, with a ledger each', () => {
  let pair: ServedPair;

  beforeEach(async () => {
    pair = await servePair('separate');
  });
  afterEach(() => pair.stop());

  const ann = () => `person:ann@${pair.triage.url}`;
  const shown = async () => (await pair.at('case', 'show', 'CASE-7001')).json;
  const items = async () => (await pair.at('attention')).json.items;
  const verified = async () => (await pair.at('audit', 'verify')).json.verified;
  const take = (...more: string[]) => pair.at('case', 'take', 'CASE-7001', '--person', 'ann', ...more);
  const force = (epoch = 1) => take('--epoch', String(epoch), '--force', ...why);
  const attention = (what: 'show' | 'resolve', ...more: string[]) =>
    pair.at('attention', what, 'CASE-7001', ...more);

  /** The offer does not arrive, and its withdrawal is not answered. */
  async function doubt(): Promise<void> {
    pair.proxy.lose('requests');
    expect((await pair.send()).exit).toBe(7);
    expect((await pair.at('handoff', 'void', 'CASE-7001:2')).exit).toBe(7);
    expect(await items()).toMatchObject([{ what: 'offer_in_doubt' }]);
  }

  it('[R-096][R-137] leaves out the epoch that the receiver may have begun, and says what it rests on', async () => {
    await doubt();
    expect(await take('--epoch', '1', ...why)).toMatchObject({
      exit: 9,
      json: { error: { code: 'withdraw_needed', message: expect.stringContaining('attention show') } },
    });
    expect((await shown()).case).toMatchObject({ owner: pair.triage.url, epoch: 1 });

    expect(await force()).toMatchObject({ exit: 0, json: { case: { owner: ann(), epoch: 3 } } });
    expect((await shown()).case).toMatchObject({ owner: ann(), epoch: 3 });
    const { entries } = (await pair.at('audit', 'export', '--case', 'CASE-7001')).json;
    expect(entries.at(-1)).toMatchObject({
      type: 'owner_changed',
      actor: ann(),
      epochBefore: 1,
      epochAfter: 3,
      rule: 'risk_double_owner',
      data: {
        change: 'takeover',
        reason: 'billing is gone for good',
        doubt: { toAgent: pair.billing.url, handoffId: 'CASE-7001:2', attempt: 1 },
      },
    });
    expect(await items()).toMatchObject([{ what: 'risk_double_owner' }]);
    expect(await verified()).toBe(true);
    // What the owner before still writes is stale, and once is enough.
    expect(await pair.at('case', 'note', 'CASE-7001', 'text', '--epoch', '1')).toMatchObject({
      exit: 3,
      json: { error: { code: 'epoch_stale' } },
    });
    expect(await force()).toMatchObject({ exit: 3, json: { error: { code: 'epoch_stale' } } });
    expect((await shown()).case.epoch).toBe(3);
  });

  it('[R-137] is said in a sentence, and the doubt ends by itself once the receiver never had it', async () => {
    await doubt();
    const taken = await run(
      ...['case', 'take', 'CASE-7001', '--person', 'ann', '--epoch', '1', '--force', ...why],
      ...['--dir', pair.triage.dir],
    );
    expect(taken).toMatchObject({
      exit: 0,
      out: `${ann()} owns CASE-7001 (root ${pair.triage.url}) at epoch 3.\n`,
      err: '',
    });
    pair.proxy.lose('nothing');
    expect(await pair.at('handoff', 'void', 'CASE-7001:2')).toMatchObject({ exit: 0 });
    expect(await items()).toEqual([]);
    expect((await shown()).case).toMatchObject({ owner: ann(), epoch: 3 });
    expect(await verified()).toBe(true);
  });

  it.each([
    [['--epoch', '1', '--force'], /equired option '--reason/],
    [['--epoch', '1', '--force', '--reason', ' '], /reason must not be empty/],
    [['--epoch', '1', '--force', '--reason', 'call +49 30 5550 1234'], /\[personal_data\]/],
    [['--epoch', '1', '--force', '--person', 'Ann', ...why], /Not the id of a person: "Ann"/],
    [['--epoch', '0', '--force', ...why], /--epoch is a whole number/],
    [['--epoch', '1', '--force=yes', ...why], /--force/],
    [['--epoch', '1', '--force', ...why], /No offer of CASE-7001 at epoch 1 is in doubt/],
  ])('is refused, and stays where it is: %j', async (argv, message) => {
    const before = await shown();
    const ran = await run('case', 'take', 'CASE-7001', '--person', 'ann', ...argv, '--dir', pair.triage.dir);
    expect(ran).toMatchObject({ exit: 2, out: '', err: expect.stringMatching(message) });
    expect(await shown()).toEqual(before);
  });

  it('needs an epoch that is current and a case that is here, in doubt or not', async () => {
    await doubt();
    const before = await shown();
    expect(await force(2)).toMatchObject({ exit: 3, json: { error: { code: 'epoch_ahead' } } });
    const none = ['case', 'take', 'CASE-7002', '--person', 'ann', '--epoch', '1', '--force', ...why];
    expect(await pair.at(...none)).toMatchObject({ exit: 9, json: { error: { code: 'case_unknown' } } });
    const elsewhere = await run(...none, '--dir', pair.billing.dir, '--json');
    expect(elsewhere).toMatchObject({ exit: 9, json: { error: { code: 'case_unknown' } } });
    const { audit_entries: _, ...after } = await shown();
    expect(after).toEqual({ ...before, audit_entries: undefined });
  });

  it('[R-137] is settled by what a person found out, named by --what among other things that wait', async () => {
    await doubt();
    await force();
    const said = ['--person', 'ann', '--reason', 'billing never had it, by telephone'];
    for (const what of ['offer-in-doubt', 'effect-unknown', 'nonsense', '']) {
      expect(await attention('resolve', '--what', what, ...said), what).toMatchObject({
        exit: 2,
        json: { error: { code: 'not_found', message: 'Nothing about CASE-7001 waits for a person.' } },
      });
    }
    expect(
      await attention('resolve', '--what', 'risk-double-owner', '--state', 'done', ...said),
    ).toMatchObject({
      exit: 2,
      json: { error: { message: expect.stringContaining('are for an unknown effect') } },
    });
    expect(await items()).toHaveLength(1);

    for (const what of ['risk-double-owner', 'risk_double_owner']) {
      expect((await attention('show', '--what', what)).json.item.what, what).toBe('risk_double_owner');
    }
    expect(await attention('resolve', '--what', 'risk-double-owner', ...said)).toMatchObject({
      exit: 0,
      json: { offer: { state: 'withdrawn', key: { handoffId: 'CASE-7001:2' } } },
    });
    expect(await items()).toEqual([]);
    expect((await shown()).case).toMatchObject({ owner: ann(), epoch: 3 });
    expect(await verified()).toBe(true);
  });

  it('does not settle a doubt that only the receiver can end, and asks which of several things is meant', async () => {
    const effect = ['CASE-7001', '--epoch', '1', '--key', 'refund-1'];
    const started = await pair.at(
      ...['effect', 'start', ...effect, '--operation', 'refund', '--amount', '10.00 EUR'],
    );
    expect(started.exit).toBe(0);
    expect((await pair.at('effect', 'settle', ...effect, '--state', 'unknown')).exit).toBe(0);
    pair.proxy.lose('requests');
    expect((await pair.send()).exit).toBe(7);
    expect((await pair.at('handoff', 'void', 'CASE-7001:2')).exit).toBe(7);
    expect(await items()).toHaveLength(2);

    const said = ['--person', 'ann', '--reason', 'looked into by hand'];
    for (const what of ['show', 'resolve'] as const) {
      const ran = await attention(what, ...(what === 'show' ? [] : said));
      expect(ran).toMatchObject({
        exit: 2,
        json: { error: { code: 'usage', message: expect.stringMatching(/--what: .*offer-in-doubt/) } },
      });
    }
    expect((await attention('show', '--what', 'effect-unknown')).json.item.data.key).toBe('refund-1');
    expect(await attention('resolve', '--what', 'offer-in-doubt', ...said)).toMatchObject({
      exit: 2,
      json: { error: { message: expect.stringMatching(/^Only \S+ can settle CASE-7001:2, attempt 1/) } },
    });
    expect(await items()).toHaveLength(2);
    const settled = await attention('resolve', '--what', 'effect-unknown', '--state', 'failed', ...said);
    expect(settled).toMatchObject({ exit: 0, json: { effect: { state: 'failed' } } });
    expect(await items()).toMatchObject([{ what: 'offer_in_doubt' }]);
  });
});

it('is refused in a shared ledger, in which nothing is in doubt', async () => {
  const folder = temporaryFolder();
  try {
    const { triage } = await initPair(folder.path);
    const at = (...argv: string[]) => run(...argv, '--dir', triage.dir, '--json');
    await at('case', 'open', '--id', 'CASE-7001', '--kind', 'refund');
    const before = (await at('case', 'show', 'CASE-7001')).json;
    const take = ['case', 'take', 'CASE-7001', '--person', 'ann', '--epoch', '1', '--force', ...why];
    expect(await at(...take)).toMatchObject({
      exit: 2,
      json: { error: { code: 'usage', message: expect.stringContaining('take the case without force') } },
    });
    expect((await at('case', 'show', 'CASE-7001')).json).toEqual(before);
  } finally {
    folder.remove();
  }
});
