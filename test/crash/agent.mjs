// One node under fire. Plain JavaScript on the built package, so that it starts quickly and is what users run.
import { openHoldfast, parseCaseFile, refundDispute } from '../../dist/index.js';

const [role, dir, peer, target, idle] = process.argv.slice(2);
// A short lease: what a killed node was working on is taken up soon.
const holdfast = await openHoldfast({ dir, ports: { pace: { leaseMs: 2_000, beatMs: 400, sweepMs: 200 } } });
const amount = { amount: '49.00', currency: 'EUR' };

const ask = (method, key) => fetch(target, { method, headers: { 'idempotency-key': key } });

if (role === 'billing') {
  holdfast.onHandoff(refundDispute.id, {
    async work(work) {
      await work.effect({
        key: 'refund-pay_B',
        operation: 'refund',
        amount,
        perform: (key) => ask('POST', `${work.ref.caseId} ${key}`),
        reconcile: async (key) => {
          const { calls } = await (await ask('GET', `${work.ref.caseId} ${key}`)).json();
          return calls > 0 ? { outcome: null } : 'not_done';
        },
      });
      await work.done({ decision: 'refunded' });
    },
  });
}
await holdfast.start();
process.send({ ready: true });

let running = true;
process.on('message', async (message) => {
  if (message !== 'stop') return;
  running = false;
  await Promise.allSettled(lanes);
  await holdfast.close();
  process.disconnect();
});

const payment = (id, at) => ({ id, ...amount, method: 'card', created_at: at });

async function handOver(number) {
  // Before the case is opened: one that could never be offered would only swell the count.
  await holdfast.checkPeer(peer, refundDispute.id);
  const caseId = `CASE-${process.pid}-${Date.now()}-${number}`;
  const { ref, epoch } = await holdfast.openCase({ caseId, kind: 'refund' });
  const evidence = await holdfast.addEvidence(Buffer.from(`charged twice, case ${caseId}`), {
    filename: 'claim.txt',
    mediaType: 'text/plain',
  });
  const caseFile = parseCaseFile(
    Buffer.from(
      JSON.stringify({
        case_id: caseId,
        kind: 'refund',
        goal: 'refund duplicate charge',
        done: ['account verified'],
        remaining: ['issue refund'],
        facts: [
          { key: 'account_id', value: 'acct_881', source: 'auth', verified: true },
          {
            key: 'payment_a',
            value: payment('pay_A', '2026-01-01T10:00:00Z'),
            source: 'payments',
            verified: true,
          },
          {
            key: 'payment_b',
            value: payment('pay_B', '2026-01-01T10:00:40Z'),
            source: 'payments',
            verified: true,
          },
          { key: 'disputed_amount', value: amount, source: 'customer', verified: false },
        ],
        constraints: {
          deadline: '2099-01-01T00:00:00Z',
          caps: { refund: { amount: '100.00', currency: 'EUR' } },
        },
      }),
    ),
  );
  const result = await holdfast.handOff({
    ref,
    caseFile,
    to: peer,
    contract: refundDispute.id,
    evidence: [{ artifactId: evidence.artifactId }],
  });
  process.send({ caseId, state: result.state, code: result.code ?? result.problem ?? null });
  if (result.state !== 'accepted') return;
  const stale = await holdfast.note({ ref, epoch, text: 'a note from the former owner' }).then(
    () => 'written',
    (error) => error.code,
  );
  if (stale !== 'epoch_stale') process.send({ caseId, violation: `a stale note was ${stale}` });
}

async function lane(first) {
  for (let number = first; running; number += 10) {
    try {
      await handOver(number);
    } catch (error) {
      // The other node may be dead: nothing was stored, and the next case is another try.
      process.send({ refused: error.code ?? String(error) });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

const lanes = role === 'triage' && !idle ? [lane(0), lane(1), lane(2)] : [];
