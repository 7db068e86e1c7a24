/** The README's example, run: two agents in one process hand a case over, and the old owner's late write is refused. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type HoldfastError, type OfferView, parseCaseFile } from '../src/index.js';
import { enterEmptyFolder, initTriageAndBilling } from './support/agents.js';

const examples = import.meta.dirname;
const folder = await enterEmptyFolder();
await initTriageAndBilling();

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
await folder.remove();
console.log('handed over once, refunded once, the late write refused');
