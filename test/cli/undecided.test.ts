import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LossyProxy, lossyProxy } from '../lossy-proxy.js';
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

describe('an offer on a bad line', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let triage: Agent;
  let billing: Agent;
  let proxy: LossyProxy;
  let nodes: Awaited<ReturnType<typeof serve>>[];

  beforeEach(async () => {
    folder = temporaryFolder();
    ({ triage, billing } = await initPair(folder.path));
    nodes = [await serve(triage.dir), await serve(billing.dir, '--port', '0')];
    proxy = await lossyProxy(billing.port, () => nodes[1]?.port ?? 0);
    await at('case', 'open', CASE_FILE);
  });

  afterEach(async () => {
    await Promise.all(nodes.map((node) => node.stop()));
    proxy.close();
    folder.remove();
  });

  const at = (...argv: string[]) => run(...argv, '--dir', triage.dir, '--json');
  const send = () =>
    at(
      ...['handoff', 'send', '--file', CASE_FILE, '--to', billing.url, '--contract', CONTRACT],
      ...['--evidence', TRANSCRIPT, '--redact'],
    );

  it('[R-061][R-065] stays open with a status of its own until the same bytes get through', async () => {
    proxy.lose('requests');
    const lost = await send();
    expect(lost).toMatchObject({ exit: 7, json: { state: 'open', problem: 'outcome_unknown' } });
    const { digest } = lost.json.offer;
    expect((await at('case', 'show', 'CASE-7001')).json.case).toMatchObject({ owner: triage.url, epoch: 1 });
    expect((await at('case', 'note', 'CASE-7001', 'still mine', '--epoch', '1')).exit).toBe(0);
    expect(await send()).toMatchObject({ exit: 9, json: { error: { code: 'offer_open' } } });

    proxy.lose('nothing');
    const through = await at('handoff', 'resend', 'CASE-7001:2');
    expect(through).toMatchObject({ exit: 0, json: { state: 'accepted', epoch: 2, offer: { digest } } });
  });

  it('can be voided, and then comes too late', async () => {
    proxy.lose('requests');
    expect((await send()).exit).toBe(7);
    const voided = await at('handoff', 'void', 'CASE-7001:2', '--reason', 'another agent is asked');
    expect(voided).toMatchObject({ exit: 0, json: { state: 'withdrawn' } });
    proxy.lose('nothing');
    expect(await at('handoff', 'resend', 'CASE-7001:2')).toMatchObject({
      exit: 9,
      json: { state: 'withdrawn' },
    });
    expect((await at('case', 'show', 'CASE-7001')).json.case).toMatchObject({ owner: triage.url, epoch: 1 });
    expect(await send()).toMatchObject({
      exit: 0,
      json: { state: 'accepted', offer: { key: { attempt: 2 } } },
    });
    const late = await at('handoff', 'void', 'CASE-7001:2');
    expect(late).toMatchObject({ exit: 9 });
  });

  it('[R-081][R-083] is accepted once when only its replies are lost', async () => {
    proxy.lose('replies');
    expect(await send()).toMatchObject({
      exit: 0,
      json: { state: 'accepted', owner: billing.url, epoch: 2 },
    });
    const shown = (await at('case', 'show', 'CASE-7001')).json;
    expect(shown.work).toHaveLength(1);
    expect(shown.decisions).toHaveLength(1);
    expect((await at('audit', 'verify')).json.verified).toBe(true);
  });

  it('[R-065] is finished by its sender when that starts again', async () => {
    proxy.lose('requests');
    expect((await send()).exit).toBe(7);
    proxy.lose('nothing');
    await nodes[0]?.stop();
    nodes[0] = await serve(triage.dir);
    await expect
      .poll(async () => (await at('case', 'show', 'CASE-7001')).json.case, { timeout: 10_000 })
      .toMatchObject({ owner: billing.url, epoch: 2 });
  });
});
