import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AcceptedWork, type Holdfast, openHoldfast, parseCaseFile } from '../../src/index.js';
import { type Agent, CASE_FILE, CONTRACT, initPair, temporaryFolder } from '../cli/support.js';

/** A lease that nobody could wait for: what is taken over was given back. */
const PACE = { leaseMs: 3_600_000, beatMs: 60_000, sweepMs: 50, offerBackoffMs: [50, 200] } as const;
const WAIT = { timeout: 10_000, interval: 25 };

let folder: ReturnType<typeof temporaryFolder>;
let triage: Agent;
let billing: Agent;
let opened: Holdfast[];

beforeEach(async () => {
  folder = temporaryFolder();
  ({ triage, billing } = await initPair(folder.path));
  opened = [];
});

afterEach(async () => {
  await Promise.all(opened.map((holdfast) => holdfast.close()));
  folder.remove();
});

async function start(
  agent: Agent,
  work?: (work: AcceptedWork) => Promise<void>,
  more: { shutdown?: string; port?: number } = {},
) {
  const { readConfig } = await import('../../src/node/index.js');
  const config = readConfig(agent.dir);
  const shutdownMs = more.shutdown === undefined ? config.shutdown : Number(more.shutdown);
  const lines: [string, Record<string, unknown>][] = [];
  const note = (fields: object, message: string) =>
    void lines.push([message, fields as Record<string, unknown>]);
  const holdfast = await openHoldfast({
    dir: agent.dir,
    ports: { pace: PACE },
    logger: { info: () => {}, warn: note, error: note },
  });
  Object.assign(holdfast.config, { shutdown: shutdownMs });
  opened.push(holdfast);
  if (work) holdfast.onHandoff(CONTRACT, { work });
  const { port } = await holdfast.start(more.port === undefined ? {} : { port: more.port });
  return { holdfast, port, lines };
}

async function handOver(holdfast: Holdfast, caseId = 'CASE-7001') {
  const { ref } = await holdfast.openCase({ caseId, kind: 'refund' });
  const { artifactId } = await holdfast.addEvidence(Buffer.from('charged twice'), {
    filename: 'claim.txt',
    mediaType: 'text/plain',
  });
  const source = JSON.parse(readFileSync(CASE_FILE, 'utf8'));
  const caseFile = parseCaseFile(Buffer.from(JSON.stringify({ ...source, case_id: caseId })));
  return holdfast.handOff({
    ref,
    caseFile,
    to: billing.url,
    contract: CONTRACT,
    evidence: [{ artifactId }],
  });
}

function gate() {
  let open = () => {};
  const wait = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { wait, open: () => open() };
}

const post = (url: string) =>
  fetch(`${url}/a2a`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });

describe('a node that is told to stop', () => {
  it('waits for the work under way, and meanwhile refuses messages and still serves its keys', async () => {
    const { holdfast: sender } = await start(triage);
    const door = gate();
    let begun = false;
    const { holdfast: receiver } = await start(billing, async (work) => {
      begun = true;
      await door.wait;
      await work.done({ decision: 'refunded' });
    });
    expect(await handOver(sender)).toMatchObject({ state: 'accepted' });
    await expect.poll(() => begun, WAIT).toBe(true);
    let closed = false;
    const closing = receiver.close().then(() => {
      closed = true;
    });
    const refused = await post(billing.url);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect((await fetch(`${billing.url}/healthz`)).status).toBe(503);
    expect((await fetch(`${billing.url}/.well-known/jwks.json`)).status).toBe(200);
    expect(closed).toBe(false);
    door.open();
    await closing;
    expect(await sender.ledger.listWork('default', { state: 'done' })).toHaveLength(1);
    await expect(post(billing.url)).rejects.toThrow();
  });

  it('[R-077] gives back what it could not finish in time, and another process goes on at once', async () => {
    const { holdfast: sender } = await start(triage);
    const never = new Promise<void>(() => {});
    let begun = false;
    const { holdfast: receiver, lines } = await start(
      billing,
      async () => {
        begun = true;
        await never;
      },
      { shutdown: '200' },
    );
    expect(await handOver(sender)).toMatchObject({ state: 'accepted' });
    await expect.poll(() => begun, WAIT).toBe(true);
    const other = await start(billing, async (work) => void (await work.done({ decision: 'refunded' })), {
      port: 0,
    });
    await receiver.close();
    expect(lines.map(([message]) => message)).toContain(
      'stopped before all was done; the rest is taken up again',
    );
    const done = () => other.holdfast.ledger.listWork('default', { state: 'done' });
    await expect.poll(async () => (await done()).length, WAIT).toBe(1);
  });

  it('gives back its open offers, and another process goes on with them at once', async () => {
    const { holdfast: sender } = await start(triage);
    const { holdfast: first } = await start(billing);
    await sender.checkPeer(billing.url, CONTRACT);
    const { holdfast: second } = await start(triage, undefined, { port: 0 });
    await first.close();
    expect(await handOver(second)).toMatchObject({ state: 'open', problem: 'peer_unreachable' });
    await second.close();
    await start(billing);
    const open = () => sender.ledger.listOffers('default', { open: true });
    await expect.poll(async () => (await open()).length, WAIT).toBe(0);
    expect(await sender.ledger.listOffers('default', {})).toMatchObject([{ state: 'accepted' }]);
  });
});

describe('what only a person can settle', () => {
  it('is logged once: an effect past its limit, and a case that is quarantined', async () => {
    let aheadMs = 0;
    const lines: [string, Record<string, unknown>][] = [];
    const holdfast = await openHoldfast({
      dir: triage.dir,
      ports: { pace: { sweepMs: 20 }, clock: { now: () => new Date(Date.now() + aheadMs) } },
      logger: {
        info: () => {},
        error: () => {},
        warn: (fields: object, message: string) =>
          void lines.push([message, fields as Record<string, unknown>]),
      },
    });
    opened.push(holdfast);
    const kind = holdfast.config.kinds.refund;
    Object.assign(kind?.policy.operations ?? {}, { [triage.url]: ['refund'] });
    await holdfast.start();
    const { ref } = await holdfast.openCase({ caseId: 'CASE-7001', kind: 'refund' });
    const amount = { amount: '1.00', currency: 'EUR' };
    await holdfast.startEffect({ ref, epoch: 1, key: 'refund-1', operation: 'refund', amount });
    aheadMs = 3_600_000;
    const unknown = () => lines.filter(([message]) => message.startsWith('an effect is unknown'));
    await expect.poll(() => unknown().length, WAIT).toBe(1);
    // The clock's jump let the lease run out; the process found out and lives on.
    await expect
      .poll(() => lines.some(([message]) => message.startsWith('the lease had run out')), WAIT)
      .toBe(true);
    expect(unknown()).toMatchObject([[expect.any(String), { case: 'CASE-7001', key: 'refund-1' }]]);
    expect(await holdfast.ledger.listEffects(ref)).toMatchObject([{ state: 'unknown' }]);
  });
});
