import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run, type ServedPair, servePair } from './support.js';

describe('handoff query', () => {
  let pair: ServedPair;

  beforeEach(async () => {
    pair = await servePair();
  });
  afterEach(() => pair.stop());

  const query = (...argv: string[]) => run('handoff', 'query', ...argv, '--dir', pair.triage.dir);

  it('[R-090] asks the receiver by handoff and by case, and verifies the receipt it gets', async () => {
    const sent = await pair.send();
    expect(sent).toMatchObject({ exit: 0, json: { state: 'accepted' } });
    const asked = await query('CASE-7001:2', '--json');
    const decision = { handoffId: 'CASE-7001:2', attempt: 1, verdict: 'accepted', epoch: 2 };
    expect(asked).toMatchObject({
      exit: 0,
      json: {
        asked: pair.billing.url,
        state: 'decided',
        decisions: [{ ...decision, workItem: sent.json.workItem }],
      },
    });
    const told = await query('CASE-7001:2', '--attempt', '1');
    expect(told.out).toContain(`${pair.billing.url} has accepted (CASE-7001:2, attempt 1), at epoch 2`);
    const byCase = await query('--case', 'CASE-7001', '--to', `${pair.billing.url}/`, '--json');
    expect(byCase).toMatchObject({ exit: 0, json: { decisions: [decision], more: false } });
    expect((await query('--case', 'CASE-7001', '--to', pair.billing.url)).out).toMatch(
      /HANDOFF .*\nCASE-7001:2 +1 +accepted/,
    );
  });

  it('[R-096] tells a withdrawal, and what is not decided, with statuses of their own', async () => {
    expect((await query('--case', 'CASE-7001', '--to', pair.billing.url)).exit).toBe(0);
    pair.proxy.lose('requests');
    expect((await pair.send()).exit).toBe(7);
    // It would deliver the offer as soon as it can; its keys are known by now.
    await pair.stopTriage();
    pair.proxy.lose('nothing');
    const open = await query('CASE-7001:2');
    expect(open.exit).toBe(7);
    expect(open.out).toMatch(/has stored no decision .*which does not mean that it never will/);
    await pair.at('handoff', 'void', 'CASE-7001:2');
    const closed = await query('CASE-7001:2');
    expect(closed.exit).toBe(9);
    expect(closed.out).toContain('holds it for withdrawn');
  });

  it('refuses what cannot be asked, and says what is wrong', async () => {
    await pair.send();
    const refused: readonly (readonly [string[], number, RegExp])[] = [
      [[], 2, /Name a handoff, such as CASE-7001:2, or a case/],
      [['--case', 'CASE-7001'], 2, /or a case with --case and --to/],
      [
        ['--case', 'CASE-7001', '--to', pair.billing.url, '--attempt', '1'],
        2,
        /--attempt belongs to a handoff/,
      ],
      [['CASE-7001:2', '--to', pair.billing.url], 2, /a handoff is asked about alone/],
      [['CASE-7001:9'], 9, /There is no offer CASE-7001:9/],
      [['--case', 'CASE-9', '--to', pair.billing.url], 9, /There is no case CASE-9/],
      [['--case', 'CASE-7001', '--to', 'https://nobody.example'], 2, /is not configured/],
      [['--case', 'CASE-7001', '--to', 'nobody'], 2, /Not a URL/],
    ];
    for (const [argv, exit, words] of refused) {
      const ran = await query(...argv);
      expect([ran.exit, ran.out], argv.join(' ')).toEqual([exit, '']);
      expect(ran.err).toMatch(words);
    }
    const asReceiver = await run('handoff', 'query', 'CASE-7001:2', '--dir', pair.billing.dir);
    expect(asReceiver.exit).toBe(2);
    expect(asReceiver.err).toContain(`Only its sender, ${pair.triage.url}, can ask`);
    pair.proxy.lose('requests');
    expect((await query('CASE-7001:2')).exit).toBe(7);
  });
});
