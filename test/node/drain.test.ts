import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AcceptedWork, type Holdfast, openHoldfast, parseCaseFile } from '../../src/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import { type Agent, CASE_FILE, CONTRACT, initPair, temporaryFolder } from '../cli/support.js';
import { lossyProxy } from '../lossy-proxy.js';

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

async function start(agent: Agent, work?: (work: AcceptedWork) => Promise<void>, port?: number) {
  const { logger, lines } = listening();
  const holdfast = await openHoldfast({ dir: agent.dir, ports: { pace: PACE }, logger });
  opened.push(holdfast);
  if (work) holdfast.onHandoff(CONTRACT, { work });
  const listens = await holdfast.start(port === undefined ? {} : { port });
  return { holdfast, port: listens.port, lines };
}

/** A logger that keeps warnings and errors. */
function listening() {
  const lines: [string, Record<string, unknown>][] = [];
  const note = (fields: object, message: string) =>
    void lines.push([message, fields as Record<string, unknown>]);
  return { lines, logger: { info: () => {}, warn: note, error: note } };
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

  it('[R-085] gives back what it could not finish in time, and another process goes on at once', async () => {
    const { holdfast: sender } = await start(triage);
    const never = new Promise<void>(() => {});
    let begun = false;
    appendFileSync(join(billing.dir, 'holdfast.yaml'), 'shutdown: 200ms\n');
    const { holdfast: receiver, lines } = await start(billing, async () => {
      begun = true;
      await never;
    });
    expect(await handOver(sender)).toMatchObject({ state: 'accepted' });
    await expect.poll(() => begun, WAIT).toBe(true);
    const finish = async (work: AcceptedWork) => void (await work.done({ decision: 'refunded' }));
    const other = await start(billing, finish, 0);
    await receiver.close();
    expect(lines.map(([message]) => message)).toContain(
      'stopped before all was done; the rest is taken up again',
    );
    const done = () => other.holdfast.ledger.listWork('default', { state: 'done' });
    await expect.poll(async () => (await done()).length, WAIT).toBe(1);
  });

  it('gives back its open offers, and another process goes on with them at once', async () => {
    const { port } = await start(billing, undefined, 0);
    const proxy = await lossyProxy(billing.port, () => port);
    try {
      const { holdfast: first } = await start(triage);
      proxy.lose('requests');
      expect(await handOver(first)).toMatchObject({ state: 'open', problem: 'outcome_unknown' });
      const { holdfast: second } = await start(triage, undefined, 0);
      // The first one's node goes on with it; then it stops, and its evidence is served by another.
      await first.close();
      proxy.lose('nothing');
      await start(triage);
      const offers = () => second.ledger.listOffers('default', {});
      await expect.poll(async () => (await offers())[0]?.state, WAIT).toBe('accepted');
      expect(await offers()).toHaveLength(1);
    } finally {
      proxy.close();
    }
  });
});

describe('what only a person can settle', () => {
  it('is logged once: an effect past its limit, and a case that is quarantined', async () => {
    let aheadMs = 0;
    const clock = { now: () => new Date(Date.now() + aheadMs) };
    const { logger, lines } = listening();
    const file = join(triage.dir, 'holdfast.yaml');
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace('"*": [refund]', `"${triage.url}": [refund]`));
    const holdfast = await openHoldfast({ dir: triage.dir, ports: { pace: { sweepMs: 20 }, clock }, logger });
    opened.push(holdfast);
    await holdfast.start();
    const { ref } = await holdfast.openCase({ caseId: 'CASE-7001', kind: 'refund' });
    const amount = { amount: '1.00', currency: 'EUR' };
    await holdfast.startEffect({ ref, epoch: 1, key: 'refund-1', operation: 'refund', amount });
    const said = (start: string) => lines.filter(([message]) => message.startsWith(start));
    aheadMs = 3_600_000;
    await expect.poll(() => said('an effect is unknown').length, WAIT).toBe(1);
    // The clock's jump let the lease run out; the process found out and lives on.
    await expect.poll(() => said('the lease had run out').length, WAIT).toBe(1);
    expect(await holdfast.ledger.listEffects(ref)).toMatchObject([{ state: 'unknown' }]);

    const ledger = await openSqliteLedger({ file: join(folder.path, 'ledger.db') });
    await ledger.quarantine({ ref, reason: 'audit_forked', witnessed: {}, found: {} });
    await ledger.close();
    await expect.poll(() => said('a case is quarantined').length, WAIT).toBe(1);
    expect(said('an effect is unknown')).toMatchObject([
      [expect.any(String), { case: 'CASE-7001', key: 'refund-1' }],
    ]);
    expect(said('a case is quarantined')).toMatchObject([[expect.any(String), { reason: 'audit_forked' }]]);
  });
});
