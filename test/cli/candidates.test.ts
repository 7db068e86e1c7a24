import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Agent,
  CASE_FILE,
  CONTRACT,
  initAgent,
  introduce,
  run,
  serve,
  TRANSCRIPT,
  temporaryFolder,
} from './support.js';

describe('handoff send to several agents', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let triage: Agent;
  let billing: Agent;
  let legal: Agent;
  let nodes: Awaited<ReturnType<typeof serve>>[];

  beforeEach(async () => {
    folder = temporaryFolder();
    [triage, billing, legal] = [
      await initAgent(folder.path, 'triage'),
      await initAgent(folder.path, 'billing'),
      await initAgent(folder.path, 'legal'),
    ];
    for (const peer of [billing, legal]) {
      await introduce(triage, peer);
      await introduce(peer, triage);
    }
    nodes = [await serve(triage.dir), await serve(billing.dir)];
    await at('case', 'open', CASE_FILE);
  });

  afterEach(async () => {
    await Promise.all(nodes.map((node) => node.stop()));
    folder.remove();
  });

  const at = (...argv: string[]) => run(...argv, '--dir', triage.dir, '--json');
  const send = (...more: string[]) =>
    at(
      ...['handoff', 'send', '--file', CASE_FILE, '--contract', CONTRACT, '--evidence', TRANSCRIPT],
      ...['--redact', ...more],
    );

  it('[R-094] keeps the list with the offer, and shows it', async () => {
    const to = ['--to', billing.url, '--to', legal.url, '--escalate-to', 'ann'];
    expect(await send(...to)).toMatchObject({ exit: 0, json: { state: 'accepted', owner: billing.url } });
    const shown = await run('handoff', 'show', 'CASE-7001:2', '--dir', triage.dir);
    expect(shown.out).toMatch(new RegExp(`candidate +${billing.url}: attempt 1`));
    expect(shown.out).toMatch(new RegExp(`candidate +${legal.url}: not asked yet`));
    expect(shown.out).toMatch(/escalates to +ann/);
    expect((await at('handoff', 'show', 'CASE-7001:2')).json.plan).toMatchObject({
      candidates: [
        { agent: billing.url, attempt: 1, passed: null },
        { agent: legal.url, attempt: null, passed: null },
      ],
    });
  });

  it('refuses a list of which nothing could come, before anything is stored', async () => {
    const refused = (...more: string[]) => send('--to', billing.url, ...more);
    expect(await refused('--to', billing.url)).toMatchObject({ exit: 2, json: { error: { code: 'usage' } } });
    expect(await refused('--to', 'http://127.0.0.1:9')).toMatchObject({
      json: { error: { code: 'peer_unknown' } },
    });
    expect(await refused('--escalate-to', 'Ann')).toMatchObject({ exit: 2 });
    expect((await at('handoff', 'list')).json.offers).toEqual([]);
  });

  it('answers only what is asked', async () => {
    const answer = (...more: string[]) => at('handoff', 'answer', 'CASE-7001:2', ...more);
    expect(await send('--to', billing.url, '--queued')).toMatchObject({ exit: 0 });
    const state = async () => (await at('handoff', 'show', 'CASE-7001:2')).json.offer?.state;
    await expect.poll(state, { timeout: 15_000, interval: 50 }).toBe('accepted');
    expect(await answer()).toMatchObject({ exit: 2 });
    expect(await answer('--fact', 'invoice_id=INV-77')).toMatchObject({ exit: 2 });
    expect(await answer('--text', 'the second')).toMatchObject({
      exit: 9,
      json: { error: { code: 'offer_decided' } },
    });
  });
});
