import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import { type Holdfast, openHoldfast, parseCaseFile } from '../../src/index.js';
import { type Agent, CASE_FILE, CONTRACT, initPair, keepToItself, temporaryFolder } from '../cli/support.js';
import { type LossyProxy, lossyProxy } from '../lossy-proxy.js';

/** Runs what is in `dist/`; `npm test` builds first. */
const DOOMED = join(import.meta.dirname, 'doomed.mjs');
const PACE = { leaseMs: 1_500, beatMs: 300, sweepMs: 100, offerBackoffMs: [50, 200] } as const;
const LIMIT_MS = 60_000;
const WAIT = { timeout: 20_000, interval: 50 };

describe('with a ledger each, a case crosses once', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let triage: Agent;
  let billing: Agent;
  let proxy: LossyProxy;
  let target: number;
  let opened: Holdfast[];
  let children: ChildProcess[];

  beforeEach(async () => {
    folder = temporaryFolder();
    ({ triage, billing } = await initPair(folder.path));
    keepToItself(triage);
    keepToItself(billing);
    [opened, children, target] = [[], [], 0];
    proxy = await lossyProxy(billing.port, () => target);
  });

  afterEach(async () => {
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(opened.map((holdfast) => holdfast.close()));
    proxy.close();
    folder.remove();
  });

  async function open(agent: Agent): Promise<Holdfast> {
    const holdfast = await openHoldfast({ dir: agent.dir, ports: { pace: PACE } });
    opened.push(holdfast);
    return holdfast;
  }

  async function startTriage(): Promise<Holdfast> {
    const holdfast = await open(triage);
    await holdfast.start();
    return holdfast;
  }

  async function startBilling(): Promise<Holdfast> {
    const holdfast = await open(billing);
    holdfast.onHandoff(CONTRACT, { work: async (work) => void (await work.done({ decision: 'refunded' })) });
    target = (await holdfast.start({ port: 0 })).port;
    return holdfast;
  }

  function doom(faults: string, ...args: string[]): ChildProcess {
    const child = fork(DOOMED, args, {
      env: { ...process.env, HOLDFAST_FAULTS: faults },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    children.push(child);
    return child;
  }

  /** Both ledgers say the same, all of it happened once, and each audit tells it. */
  async function expectCrossed(sender: Holdfast, receiver: Holdfast): Promise<void> {
    const ref = { tenant: 'default', root: triage.url, caseId: 'CASE-1' };
    const workOf = async () => (await receiver.ledger.snapshot(ref)).work.map(({ state }) => state);
    await expect.poll(workOf, WAIT).toEqual(['done']);
    const stateOf = async () => (await sender.ledger.snapshot(ref)).offers.map(({ state }) => state);
    await expect.poll(stateOf, WAIT).toEqual(['accepted']);
    for (const { ledger } of [sender, receiver]) {
      const snapshot = await ledger.snapshot(ref);
      expect(snapshot.case).toMatchObject({ owner: billing.url, epoch: 2 });
      expect(snapshot.decisions).toMatchObject([{ verdict: 'accepted', epochAfter: 2 }]);
      expect(snapshot.transfers).toHaveLength(1);
      expect(verifyChain(snapshot.audit)).toMatchObject({ ok: true });
      expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);
    }
  }

  // The first answer that it reads is to its announcement.
  it.each(['S2.after_commit', 'S3.after_mark', 'S5.before_read@2', 'S6.before_commit', 'S6.after_commit'])(
    '[R-065][R-088] from a sender that dies at %s',
    async (at) => {
      const [point, hit] = at.split('@');
      const receiver = await startBilling();
      const child = doom(
        `${point}=kill9${hit === undefined ? '' : `@${hit}`}`,
        'send',
        triage.dir,
        billing.url,
        'CASE-1',
      );
      expect((await once(child, 'exit'))[1]).toBe('SIGKILL');
      await expectCrossed(await startTriage(), receiver);
    },
    LIMIT_MS,
  );

  it.each(['R1.received', 'R3.before_commit', 'R3.after_commit', 'R4.before_answer', 'R5.before_work'])(
    '[R-083][R-085] to a receiver that dies at %s',
    async (point) => {
      const sender = await startTriage();
      const child = doom(`${point}=kill9`, 'receive', billing.dir, '0');
      const gone = once(child, 'exit');
      const [{ port }] = (await once(child, 'message')) as [{ port: number }];
      target = port;
      const { ref } = await sender.openCase({ caseId: 'CASE-1', kind: 'refund' });
      const { artifactId } = await sender.addEvidence(Buffer.from('charged twice'), {
        filename: 'claim.txt',
        mediaType: 'text/plain',
      });
      const source = JSON.parse(readFileSync(CASE_FILE, 'utf8'));
      const handingOver = sender.handOff({
        ref,
        caseFile: parseCaseFile(Buffer.from(JSON.stringify({ ...source, case_id: 'CASE-1' }))),
        to: billing.url,
        contract: CONTRACT,
        evidence: [{ artifactId }],
      });
      expect((await gone)[1]).toBe('SIGKILL');
      const receiver = await startBilling();
      await handingOver;
      await expectCrossed(sender, receiver);
    },
    LIMIT_MS,
  );
});
