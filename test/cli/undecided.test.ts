import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ServedPair, servePair } from './support.js';

describe('an offer on a bad line', () => {
  let pair: ServedPair;

  beforeEach(async () => {
    pair = await servePair();
  });
  afterEach(() => pair.stop());

  it('[R-061][R-065] stays open with a status of its own until the same bytes get through', async () => {
    pair.proxy.lose('requests');
    const lost = await pair.send();
    expect(lost).toMatchObject({ exit: 7, json: { state: 'open', problem: 'outcome_unknown' } });
    const { digest } = lost.json.offer;
    expect((await pair.at('case', 'show', 'CASE-7001')).json.case).toMatchObject({
      owner: pair.triage.url,
      epoch: 1,
    });
    expect((await pair.at('case', 'note', 'CASE-7001', 'still mine', '--epoch', '1')).exit).toBe(0);
    expect(await pair.send()).toMatchObject({ exit: 9, json: { error: { code: 'offer_open' } } });

    pair.proxy.lose('nothing');
    const through = await pair.at('handoff', 'resend', 'CASE-7001:2');
    expect(through).toMatchObject({ exit: 0, json: { state: 'accepted', epoch: 2, offer: { digest } } });
  });

  it('can be voided, and then comes too late', async () => {
    pair.proxy.lose('requests');
    expect((await pair.send()).exit).toBe(7);
    const voided = await pair.at('handoff', 'void', 'CASE-7001:2', '--reason', 'another agent is asked');
    expect(voided).toMatchObject({ exit: 0, json: { state: 'withdrawn' } });
    pair.proxy.lose('nothing');
    expect(await pair.at('handoff', 'resend', 'CASE-7001:2')).toMatchObject({
      exit: 9,
      json: { state: 'withdrawn' },
    });
    expect((await pair.at('case', 'show', 'CASE-7001')).json.case).toMatchObject({
      owner: pair.triage.url,
      epoch: 1,
    });
    expect(await pair.send()).toMatchObject({
      exit: 0,
      json: { state: 'accepted', offer: { key: { attempt: 2 } } },
    });
    const late = await pair.at('handoff', 'void', 'CASE-7001:2');
    expect(late).toMatchObject({ exit: 9 });
  });

  it('[R-081][R-083] is accepted once when only its replies are lost', async () => {
    pair.proxy.lose('replies');
    expect(await pair.send()).toMatchObject({
      exit: 0,
      json: { state: 'accepted', owner: pair.billing.url, epoch: 2 },
    });
    const shown = (await pair.at('case', 'show', 'CASE-7001')).json;
    expect(shown.work).toHaveLength(1);
    expect(shown.decisions).toHaveLength(1);
    expect((await pair.at('audit', 'verify')).json.verified).toBe(true);
  });

  it('[R-065] is finished by its sender when that starts again', async () => {
    pair.proxy.lose('requests');
    expect((await pair.send()).exit).toBe(7);
    pair.proxy.lose('nothing');
    await pair.stopTriage();
    await pair.startTriage();
    await expect
      .poll(async () => (await pair.at('case', 'show', 'CASE-7001')).json.case, { timeout: 10_000 })
      .toMatchObject({ owner: pair.billing.url, epoch: 2 });
  });
});
