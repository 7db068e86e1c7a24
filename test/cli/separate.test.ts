import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LossyProxy, lossyProxy } from '../lossy-proxy.js';
import {
  type Agent,
  CASE_FILE,
  CONTRACT,
  initPair,
  keepToItself,
  run,
  serve,
  TRANSCRIPT,
  temporaryFolder,
} from './support.js';

describe('agents with a ledger each', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let triage: Agent;
  let billing: Agent;
  let proxy: LossyProxy;
  let nodes: Awaited<ReturnType<typeof serve>>[];

  beforeEach(async () => {
    folder = temporaryFolder();
    ({ triage, billing } = await initPair(folder.path));
    keepToItself(triage);
    keepToItself(billing);
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

  it('[R-061] hand a case over, and both say who owns it', async () => {
    expect(await send()).toMatchObject({ exit: 0, json: { state: 'accepted', owner: billing.url } });
    for (const { dir } of [triage, billing]) {
      const shown = await run('case', 'show', 'CASE-7001', '--dir', dir, '--json');
      expect(shown.json.case).toMatchObject({ owner: billing.url, epoch: 2 });
      expect((await run('audit', 'verify', '--dir', dir, '--json')).json.verified).toBe(true);
    }
  });

  it('[R-089][R-096] are told of doubt with the status of what is not decided, and of its end', async () => {
    proxy.lose('requests');
    expect((await send()).exit).toBe(7);
    const voided = await run('handoff', 'void', 'CASE-7001:2', '--dir', triage.dir);
    expect(voided.exit).toBe(7);
    expect(voided.out).toMatch(/In doubt .*the receiver did not answer the withdrawal/);
    expect((await at('handoff', 'list', '--open')).json.offers).toMatchObject([{ state: 'in_doubt' }]);
    proxy.lose('nothing');
    expect(await at('handoff', 'void', 'CASE-7001:2')).toMatchObject({
      exit: 0,
      json: { state: 'withdrawn' },
    });
    expect((await at('handoff', 'query', 'CASE-7001:2')).exit).toBe(9);
    expect(await send()).toMatchObject({ exit: 0, json: { offer: { key: { attempt: 2 } } } });
  });
});
