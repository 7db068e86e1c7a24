import { readFile } from 'node:fs/promises';
import { accept, isHoldfastError, openHoldfast, parseCaseFile, reject } from 'holdfast';

// Your payment system. It remembers refunds by their idempotency key.
const payments = new Set(['pay_A', 'pay_B']);
const refunds = new Map();
async function refund(idempotencyKey) {
  if (!refunds.has(idempotencyKey)) refunds.set(idempotencyKey, `re_${refunds.size + 1}`);
  return refunds.get(idempotencyKey);
}

const billing = await openHoldfast({ dir: 'billing' });
billing.onHandoff('refund-dispute/1', {
  check({ facts }) {
    if (payments.has(facts.payment_b.id)) return accept();
    return reject('records_disagree', 'No such payment.', {
      fields: [{ path: 'facts.payment_b.value.id', problem: 'is not in our records' }],
    });
  },
  async work({ envelope, effect, note, done }) {
    const { id, amount, currency } = envelope.facts.find(({ key }) => key === 'payment_b').value;
    const { row } = await effect({
      key: `refund-${id}`,
      operation: 'refund',
      amount: { amount, currency },
      perform: refund,
      outcome: (refundId) => refundId,
      reconcile: async (key) => (refunds.has(key) ? { outcome: refunds.get(key) } : 'not_done'),
    });
    await note(`refunded ${id}`);
    await done({ decision: 'refunded', refund_id: row.outcome });
  },
});
await billing.start();

const triage = await openHoldfast({ dir: 'triage' });
await triage.start();
try {
  const { ref, epoch } = await triage.openCase({ caseId: 'CASE-7001', kind: 'refund' });
  const caseFile = parseCaseFile(await readFile('case.json'));
  const words = Buffer.from('Customer: I was charged twice.');
  const evidence = [await triage.addEvidence(words, { filename: 'chat.txt', mediaType: 'text/plain' })];
  const result = await triage.handOff({
    ref,
    caseFile,
    evidence,
    to: billing.url,
    contract: 'refund-dispute/1',
  });
  switch (result.state) {
    case 'accepted': // billing is the owner
      console.log(`${result.owner} owns the case at epoch ${result.epoch}`);
      break;
    case 'rejected': // still ours: correct the case file and hand off again, or ask somebody else
      console.log(`rejected: ${result.code}, ${result.reason}`, result.fields);
      break;
    case 'open': // not known: the offer stays open, the same bytes can be sent again
      console.log(`no decision yet: ${result.problem}, ${result.reason}`);
      await triage.resend(result.offer.key);
      break;
    default: // withdrawn or expired: still ours
      console.log(result.state);
  }
  console.log(await triage.statusPointer(ref)); // all that triage may tell the customer now
  await triage.note({ ref, epoch, text: 'too late' });
} catch (error) {
  if (!isHoldfastError(error)) throw error;
  console.log(error.code, error.data); // epoch_stale { presented: 1, current: 2 }
} finally {
  await billing.close(); // waits for work under way
  await triage.close();
}
