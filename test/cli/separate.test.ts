import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  CASE_FILE,
  CONTRACT,
  initPair,
  keepToItself,
  run,
  type ServedPair,
  serve,
  servePair,
  TRANSCRIPT,
  temporaryFolder,
} from './support.js';

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
    expect(voided.out).toMatch(
      /In doubt .*the receiver did not answer the withdrawal.*attention show CASE-7001/s,
    );
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

describe('agents that were told half of it', () => {
  it.each([
    { separate: 'neither', exit: 7, said: /rejection case_unknown.*their ledgers are two.*\[peer_error\]/s },
    { separate: 'the sender', exit: 6, said: /\[case_unknown\]\nHint: .*`mode: separate` in both/ },
  ])(
    '[R-061] learn what is missing where $separate says that the ledgers are two',
    async ({ separate, exit, said }) => {
      const folder = temporaryFolder();
      const { triage, billing } = await initPair(folder.path);
      if (separate === 'the sender') keepToItself(triage);
      const elsewhere = join(billing.dir, 'holdfast.yaml');
      writeFileSync(elsewhere, readFileSync(elsewhere, 'utf8').replace('../ledger.db', 'ledger.db'));
      const nodes = [await serve(triage.dir), await serve(billing.dir)];
      await run('case', 'open', CASE_FILE, '--dir', triage.dir);
      const sent = await run(
        ...['handoff', 'send', '--file', CASE_FILE, '--to', billing.url, '--contract', CONTRACT],
        ...['--evidence', TRANSCRIPT, '--redact', '--dir', triage.dir],
      );
      await Promise.all(nodes.map((node) => node.stop()));
      folder.remove();
      expect(sent).toMatchObject({ exit, out: expect.stringMatching(said) });
    },
  );

  it('[R-061] are made with the mode they ask for, and told that a kind keeps its mode', async () => {
    const folder = temporaryFolder();
    const dir = join(folder.path, 'triage');
    await run('init', '--agent', 'triage', '--dir', dir, '--mode', 'separate');
    await run('kind', 'apply', '--dir', dir);
    expect((await run('kind', 'list', '--dir', dir, '--json')).json.kinds).toMatchObject([
      { mode: 'separate' },
    ]);
    const file = join(dir, 'holdfast.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replace('mode: separate', 'mode: shared'));
    const refused = await run('kind', 'apply', '--replace', '--dir', dir);
    folder.remove();
    expect(refused).toMatchObject({
      exit: 9,
      err: expect.stringMatching(
        /mode separate in this ledger.*mode shared.*keeps its mode.*\[kind_conflict\]/,
      ),
    });
    expect(refused.err).not.toContain('--replace');
  });
});
