import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CASE_FILE, CONTRACT, run, type ServedPair, servePair, TRANSCRIPT } from './support.js';

describe.each(['shared', 'separate'] as const)('handoff send --person, %s', (mode) => {
  let pair: ServedPair;

  beforeEach(async () => {
    pair = await servePair(mode);
    const take = ['case', 'take', 'CASE-7001', '--person', 'ann', '--epoch', '1', '--reason', 'by hand'];
    expect((await pair.at(...take)).json.case).toMatchObject({ owner: ann(), epoch: 2 });
  });
  afterEach(() => pair.stop());

  const ann = () => `person:ann@${pair.triage.url}`;
  const send = (...more: string[]) =>
    pair.at(
      ...['handoff', 'send', '--file', CASE_FILE, '--to', pair.billing.url, '--contract', CONTRACT],
      ...['--evidence', TRANSCRIPT, '--redact', ...more],
    );
  const entry = async (dir: string, type: string) => {
    const { entries } = (await run('audit', 'export', '--case', 'CASE-7001', '--dir', dir, '--json')).json;
    return entries.find((one: { type: string }) => one.type === type);
  };
  const standing = async () => ({
    case: (await pair.at('case', 'show', 'CASE-7001')).json.case,
    offers: (await pair.at('handoff', 'list')).json.offers,
    evidence: (await pair.at('evidence', 'list')).json,
  });

  it('[R-062][R-137] hands over what the person owns, with an approval that both sides keep', async () => {
    expect(await send('--person', 'ann')).toMatchObject({
      exit: 0,
      json: { state: 'accepted', owner: pair.billing.url, epoch: 3 },
    });
    for (const [{ dir }, type] of [
      [pair.triage, 'offer_intended'],
      [pair.billing, 'handoff_accepted'],
    ] as const) {
      expect((await entry(dir, type)).data.approval, type).toEqual({
        person: ann(),
        digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      });
      expect((await run('case', 'show', 'CASE-7001', '--dir', dir, '--json')).json.case).toMatchObject({
        owner: pair.billing.url,
        epoch: 3,
      });
      expect((await run('audit', 'verify', '--dir', dir, '--json')).json.verified).toBe(true);
    }
    // What she has handed over is no longer hers.
    expect(await send('--person', 'ann')).toMatchObject({ exit: 3, json: { error: { code: 'not_owner' } } });
  });

  it.each([
    [[], 3, 'not_owner', /owned by person:ann@/],
    [['--person', 'bob'], 3, 'not_owner', /owned by person:ann@.*, not by person:bob@/],
    [['--person', 'Ann'], 2, 'usage', /Not the id of a person: "Ann"/],
    [['--person', 'ann@x'], 2, 'usage', /Not the id of a person/],
    [['--person', ''], 2, 'usage', /person/],
    [['--person', 'ann', '--escalate-to', 'bob'], 2, 'usage', /to one agent at a time/],
    [['--person', 'ann', '--artifact', 'claim'], 2, 'evidence_file_missing', /no artifact claim/],
    [['--person', 'ann', '--to', 'http://127.0.0.1:9'], 2, 'peer_unknown', /http:\/\/127\.0\.0\.1:9/],
  ])('is refused, and nothing changes: %j', async (argv, exit, code, message) => {
    const before = await standing();
    expect(await send(...argv)).toMatchObject({
      exit,
      json: { error: { code, message: expect.stringMatching(message) } },
    });
    expect(await standing()).toEqual(before);
  });
});
