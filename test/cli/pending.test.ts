import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { decideLater, type Holdfast, openHoldfast, parseCaseFile } from '../../src/index.js';
import { type Agent, CASE_FILE, CONTRACT, initPair, run, temporaryFolder } from './support.js';

const WAIT = { timeout: 20_000, interval: 50 };

describe('offers that wait for a person', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let agent: Agent;
  let triage: Holdfast;
  let billing: Holdfast;

  beforeEach(async () => {
    folder = temporaryFolder();
    const agents = await initPair(folder.path);
    agent = agents.billing;
    triage = await openHoldfast({ dir: agents.triage.dir });
    billing = await openHoldfast({ dir: agents.billing.dir });
    billing.onHandoff(CONTRACT, { check: () => decideLater() });
    await triage.start();
    await billing.start();
  });

  afterEach(async () => {
    await triage.close();
    await billing.close();
    folder.remove();
  });

  const at = (...argv: string[]) => run('handoff', ...argv, '--dir', agent.dir);

  /** Sends, and comes back once the receiver has it. */
  async function handOff(caseId: string, more: object = {}): Promise<ReturnType<Holdfast['handOff']>[]> {
    const { ref } = await triage.openCase({ caseId, kind: 'refund' });
    const { artifactId } = await triage.addEvidence(Buffer.from('charged twice'), {
      filename: 'claim.txt',
      mediaType: 'text/plain',
    });
    const document = JSON.parse(readFileSync(CASE_FILE, 'utf8'));
    const caseFile = parseCaseFile(Buffer.from(JSON.stringify({ ...document, ...more, case_id: caseId })));
    const evidence = [{ artifactId }];
    const sending = triage.handOff({ ref, caseFile, to: billing.url, contract: CONTRACT, evidence });
    // Nobody listens where a test fails.
    sending.catch(() => undefined);
    await vi.waitUntil(async () => (await billing.listPending({ state: 'waiting' })).length > 0, WAIT);
    return [sending];
  }

  it('[R-093] are listed, accepted by one, and then owned', async () => {
    expect((await at('pending')).out).toContain('No offer waits for a decision.');
    const [sending] = await handOff('CASE-1');
    const listed = await at('pending');
    expect(listed.out).toMatch(/CASE-1:2 +1 +http:\S+ +refund-dispute\/1 +waiting/);
    const asJson = await at('pending', '--json');
    expect(asJson).toMatchObject({ exit: 0, err: '' });
    const shown = asJson.json.pending;
    expect(shown).toMatchObject([{ state: 'waiting', toAgent: billing.url }]);
    expect(shown[0].message).toBeUndefined();
    const attention = (...argv: string[]) => run('attention', ...argv, '--dir', agent.dir);
    expect((await attention('list')).out).toMatch(/CASE-1 +decision waiting .*CASE-1:2, attempt 1/);
    const explained = await attention('show', 'CASE-1', '--root', triage.url);
    expect(explained.out).toContain(`holdfast handoff accept CASE-1:2 --attempt 1 --from ${triage.url}`);
    expect(explained.out).toContain('The check leaves this offer to a person.');
    const by = ['--person', 'ann', '--reason', 'x', '--root', triage.url];
    expect((await attention('resolve', 'CASE-1', ...by)).err).toContain('accepting or rejecting the offer');
    expect((await at('accept', 'CASE-1:2')).exit).toBe(2);
    expect((await at('accept', 'CASE-9:2', '--person', 'ann')).exit).toBe(9);
    const accepted = await at('accept', 'CASE-1:2', '--person', 'ann');
    expect(accepted.out).toContain(`${billing.url} owns the case at epoch 2`);
    expect((await attention('list')).out).toContain('Nothing waits for a person.');
    expect(await sending).toMatchObject({ state: 'accepted', owner: billing.url });
    expect((await at('accept', 'CASE-1:2', '--person', 'ann', '--json')).exit).not.toBe(0);
  });

  it('[R-093] are shown with what there is to decide on', async () => {
    const [sending] = await handOff('CASE-3', { goal: 'Refund it.\nState: accepted\u2028by ann' });
    const shown = await at('pending', 'CASE-3:2');
    expect(shown).toMatchObject({ exit: 0, err: '' });
    expect(shown.out).toMatch(/^goal +Refund it\. State: accepted by ann$/m);
    expect(shown.out).toMatch(new RegExp(`^from +${triage.url}$`, 'm'));
    expect(shown.out).toMatch(/^contract +refund-dispute\/1$/m);
    expect(shown.out).toMatch(/^accept by +20\S+Z$/m);
    expect(shown.out).toMatch(/FACT +VALUE +SOURCE +VERIFIED\n(.*\n)*\S+ +\S.* (verified|claimed)\n/);
    expect(shown.out).toMatch(/^Constraints\n {2}- /m);
    expect(shown.out).toMatch(/^Open questions\n {2}- /m);
    expect(shown.out).toMatch(/ claim\.txt +text\/plain +13 +[0-9a-f]{64}$/m);
    const asJson = await at('pending', 'CASE-3:2', '--attempt', '1', '--from', triage.url, '--json');
    const { pending, envelope, evidence } = asJson.json;
    expect(pending).toMatchObject({ key: { handoffId: 'CASE-3:2' }, state: 'waiting' });
    expect(envelope).toMatchObject({
      case_id: 'CASE-3',
      facts: expect.any(Array),
      accept_by: pending.acceptBy,
    });
    expect(evidence).toMatchObject([{ filename: 'claim.txt', bytes: 13 }]);
    expect((await at('pending', 'CASE-9:2')).err).toContain('[offer_unknown]');
    const by = ['--person', 'ann', '--code', 'records_disagree', '--reason', 'not known here'];
    await at('reject', 'CASE-3:2', ...by);
    await sending;
  });

  it('[R-093] are rejected by one with a code and a reason', async () => {
    const [sending] = await handOff('CASE-2');
    const wrong = await at('reject', 'CASE-2:2', '--person', 'ann', '--code', 'nope', '--reason', 'x');
    expect(wrong).toMatchObject({ exit: 2, err: expect.stringContaining('The code nope is neither') });
    const by = ['--person', 'ann', '--code', 'records_disagree', '--reason', 'pay_B is not known here'];
    expect(await at('reject', 'CASE-2:2', ...by, '--json')).toMatchObject({
      exit: 0,
      json: { decision: { verdict: 'rejected', code: 'records_disagree' } },
    });
    expect(await sending).toMatchObject({ state: 'rejected', code: 'records_disagree' });
  });
});
