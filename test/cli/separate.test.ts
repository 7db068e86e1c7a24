import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run, type ServedPair, servePair } from './support.js';

describe('agents with a ledger each', () => {
  let pair: ServedPair;

  beforeEach(async () => {
    pair = await servePair('separate');
  });
  afterEach(() => pair.stop());

  it('[R-061] hand a case over, and both say who owns it', async () => {
    expect(await pair.send()).toMatchObject({
      exit: 0,
      json: { state: 'accepted', owner: pair.billing.url },
    });
    for (const { dir } of [pair.triage, pair.billing]) {
      const shown = await run('case', 'show', 'CASE-7001', '--dir', dir, '--json');
      expect(shown.json.case).toMatchObject({ owner: pair.billing.url, epoch: 2 });
      expect((await run('audit', 'verify', '--dir', dir, '--json')).json.verified).toBe(true);
    }
  });

  it('[R-089][R-096] are told of doubt with the status of what is not decided, and of its end', async () => {
    pair.proxy.lose('requests');
    expect((await pair.send()).exit).toBe(7);
    const voided = await run('handoff', 'void', 'CASE-7001:2', '--dir', pair.triage.dir);
    expect(voided.exit).toBe(7);
    expect(voided.out).toMatch(/In doubt .*the receiver did not answer the withdrawal/);
    expect((await pair.at('handoff', 'list', '--open')).json.offers).toMatchObject([{ state: 'in_doubt' }]);
    pair.proxy.lose('nothing');
    expect(await pair.at('handoff', 'void', 'CASE-7001:2')).toMatchObject({
      exit: 0,
      json: { state: 'withdrawn' },
    });
    expect((await pair.at('handoff', 'query', 'CASE-7001:2')).exit).toBe(9);
    expect(await pair.send()).toMatchObject({ exit: 0, json: { offer: { key: { attempt: 2 } } } });
  });
});
