import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { FAULT_POINTS, faultHits } from '../../src/faults/index.js';
import {
  accept,
  clarify,
  type HandoffHandler,
  type Holdfast,
  openHoldfast,
  parseCaseFile,
  refundDispute,
  reject,
} from '../../src/index.js';
import { CASE_FILE, initPair, temporaryFolder } from '../cli/support.js';
import { startOrganisations } from '../node/organisations.js';

// Read when the module is loaded, as at the start of a process.
vi.hoisted(() => {
  process.env.HOLDFAST_FAULTS = 'count';
});

const folder = temporaryFolder();
const refund = { key: 'refund-pay_B', operation: 'refund', amount: { amount: '49.00', currency: 'EUR' } };
const failing = (): never => {
  throw new Error('out of order');
};
let check: HandoffHandler['check'] = () => accept();

/** Everything that a handover can come by: accepted, rejected, sent twice, taken back, and an effect that was in doubt. */
async function scenario(): Promise<void> {
  const agents = await initPair(folder.path);
  const triage = await openHoldfast({ dir: agents.triage.dir });
  const billing = await openHoldfast({ dir: agents.billing.dir });
  billing.onHandoff(refundDispute, {
    check: (view) => check?.(view) ?? accept(),
    async work(work) {
      await work.effect({ ...refund, perform: failing }).catch(() => undefined);
      await work
        .effect({ ...refund, perform: failing, reconcile: () => Promise.resolve('not_done') })
        .catch(() => undefined);
      await work.effect({ ...refund, perform: async () => 'repaid', reconcile: async () => 'not_done' });
      await work.done({ decision: 'refunded' });
    },
  });
  await triage.start();
  await billing.start();
  try {
    const offer = (caseId: string, person?: string) => handOff(triage, billing.url, caseId, person);
    expect(await offer('CASE-1')).toMatchObject({ state: 'accepted' });
    check = () => reject('records_disagree', 'not here');
    expect(await offer('CASE-2')).toMatchObject({ state: 'rejected' });
    expect(await offer('CASE-5', 'ann')).toMatchObject({ state: 'rejected' });
    check = ({ clarifications }) => (clarifications.length === 0 ? clarify('Which one?') : accept());
    const asked = await offer('CASE-6');
    await triage.answerQuestion({ key: asked.offer.key, text: 'The second.' });
    check = failing;
    const [twice, back] = await Promise.all([offer('CASE-3'), offer('CASE-4')]);
    expect([twice.state, back.state]).toEqual(['open', 'open']);
    expect(await triage.voidOffer(back.offer.key, 'taken back')).toMatchObject({ state: 'withdrawn' });
    check = () => accept();
    const decided = async () => (await triage.ledger.getOffer(twice.offer.key))?.state;
    await vi.waitUntil(async () => (await decided()) === 'accepted', { timeout: 20_000 });
    await deliver(triage, billing.url, twice.offer.message);
  } finally {
    await triage.close();
    await billing.close();
  }
}

/** With a ledger each, an offer closes by what the other ledger has stored, and is in doubt as long as nobody says. */
async function apart(): Promise<void> {
  const world = await startOrganisations(['triage', 'billing']);
  const { triage, billing } = world;
  try {
    await world.open();
    billing.check = () => reject('records_disagree', 'not here');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'rejected' });
    billing.line.lose('requests');
    const { offer } = await world.handOff(triage, billing);
    expect(await triage.node.voidOffer(offer.key, 'taken back')).toMatchObject({
      offer: { state: 'in_doubt' },
    });
    billing.line.lose('nothing');
    const closed = async () => (await triage.node.ledger.getOffer(offer.key))?.state;
    await vi.waitUntil(async () => (await closed()) === 'withdrawn', { timeout: 20_000 });
  } finally {
    await world.close();
  }
}

/** As a network does that delivers twice. */
async function deliver(triage: Holdfast, to: string, message: string): Promise<void> {
  const answer = await fetch(`${to}/a2a`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await triage.identity.tokenFor(to)}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
    },
    body: `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message}}}`,
  });
  expect(answer.status).toBe(200);
}

async function handOff(triage: Holdfast, to: string, caseId: string, person?: string) {
  const { ref } = await triage.openCase({ caseId, kind: 'refund' });
  const { artifactId } = await triage.addEvidence(Buffer.from('charged twice'), {
    filename: 'claim.txt',
    mediaType: 'text/plain',
  });
  const file = JSON.parse(readFileSync(CASE_FILE, 'utf8'));
  const caseFile = parseCaseFile(Buffer.from(JSON.stringify({ ...file, case_id: caseId })));
  const named = person === undefined ? {} : { escalateTo: person };
  const evidence = [{ artifactId }];
  return triage.handOff({ ref, caseFile, to, contract: refundDispute.id, evidence, ...named });
}

beforeAll(scenario);
beforeAll(apart);
afterAll(() => folder.remove());

describe('the fault points', () => {
  it.each(Object.keys(FAULT_POINTS))('%s is come by', (name) => {
    expect(faultHits()).toHaveProperty([name]);
  });
});
