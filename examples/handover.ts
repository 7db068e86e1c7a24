/** The README's example, run: two agents in one process hand a case over, and the old owner's late write is refused. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { main } from '../src/cli/index.js';
import { type HoldfastError, type OfferView, parseCaseFile } from '../src/index.js';

const examples = import.meta.dirname;
const folder = await mkdtemp(join(tmpdir(), 'holdfast-example-'));
process.chdir(folder);

/** What a user types in the guide. */
async function holdfast(...words: string[]): Promise<Record<string, string>> {
  const written: string[] = [];
  const write = (text: string) => void written.push(text);
  const io = { out: write, err: write, env: {}, color: false, untilStopped: async () => {} };
  const code = await main([...words, '--json'], io);
  assert.equal(code, 0, written.join(''));
  return JSON.parse(written.join(''));
}

async function freeUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as { port: number };
  await new Promise((closed) => server.close(closed));
  return `http://127.0.0.1:${port}`;
}

const agents: Record<string, { url: string; key: string }> = {};
for (const agent of ['triage', 'billing']) {
  const url = await freeUrl();
  const made = await holdfast(
    'init',
    '--agent',
    agent,
    '--dir',
    agent,
    '--url',
    url,
    '--ledger',
    '../ledger.db',
  );
  agents[agent] = { url, key: made.thumbprint as string };
}
for (const [agent, peer] of [
  ['triage', 'billing'],
  ['billing', 'triage'],
] as const) {
  const { url, key } = agents[peer] as { url: string; key: string };
  await holdfast(
    'peer',
    'add',
    '--dir',
    agent,
    '--url',
    url,
    '--key',
    key,
    '--contract',
    'refund-dispute/1',
    '--skill',
    'billing',
  );
}

const amount = { amount: '49.00', currency: 'EUR' };
const refunds: string[] = [];
const known = ({ facts }: OfferView) => ['pay_A', 'pay_B'].includes((facts.payment_b as { id: string }).id);
const refund = async (idempotencyKey: string) => refunds.push(idempotencyKey);
const caseFile = parseCaseFile(await readFile(join(examples, 'refund/case.json')));
const transcript = Buffer.from('Customer: I was charged twice.');
const refused: HoldfastError[] = [];
const report = (error: HoldfastError) => refused.push(error);

// The README shows what follows, with the import from 'holdfast'.
// begin
import { accept, openHoldfast, reject } from '../src/index.js';

const billing = await openHoldfast({ dir: 'billing' });
billing.onHandoff('refund-dispute/1', {
  check: (offer) => (known(offer) ? accept() : reject('records_disagree', 'No such payment.')),
  async work({ effect, done }) {
    await effect({ key: 'refund-pay_B', operation: 'refund', amount, perform: refund });
    await done({ decision: 'refunded' });
  },
});
await billing.start();

const triage = await openHoldfast({ dir: 'triage' });
await triage.start();
const { ref, epoch } = await triage.openCase({ caseId: 'CASE-7001', kind: 'refund' });
const evidence = [await triage.addEvidence(transcript, { filename: 'chat.txt', mediaType: 'text/plain' })];
const done = await triage.handOff({ ref, caseFile, evidence, to: billing.url, contract: 'refund-dispute/1' });
if (done.state === 'accepted') await triage.note({ ref, epoch, text: 'late' }).catch(report); // stale epoch 1, current 2
// end

await billing.close(); // waits for the work
await triage.close();
assert.equal(done.state, 'accepted');
assert.deepEqual(
  refused.map(({ code, message }) => [code, message]),
  [['epoch_stale', 'stale epoch 1, current 2']],
);
assert.deepEqual(refunds, ['refund-pay_B']);
await rm(folder, { recursive: true });
console.log('handed over once, refunded once, the late write refused');
