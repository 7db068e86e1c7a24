// One of several nodes whose callers all want the same case. Plain JavaScript on the built package.
import { armFaults } from '../../dist/faults/index.js';
import { openHoldfast, parseCaseFile, refundDispute } from '../../dist/index.js';

const [dir, ...peers] = process.argv.slice(2);
const pace = { leaseMs: 2_000, beatMs: 500, sweepMs: 500 };
const holdfast = await openHoldfast({ dir, ports: { pace } });
holdfast.onHandoff(refundDispute.id, {});
const evidence = await holdfast.addEvidence(Buffer.from('charged twice'), {
  filename: 'claim.txt',
  mediaType: 'text/plain',
});
const money = { amount: '49.00', currency: 'EUR' };
const payment = (id, at) => ({ id, ...money, method: 'card', created_at: at });

function caseFileOf(caseId) {
  const fact = (key, value, source, verified) => ({ key, value, source, verified });
  return parseCaseFile(
    Buffer.from(
      JSON.stringify({
        case_id: caseId,
        kind: 'refund',
        goal: 'refund duplicate charge',
        done: ['account verified'],
        remaining: ['issue refund'],
        facts: [
          fact('account_id', 'acct_881', 'auth', true),
          fact('payment_a', payment('pay_A', '2026-01-01T10:00:00Z'), 'payments', true),
          fact('payment_b', payment('pay_B', '2026-01-01T10:00:40Z'), 'payments', true),
          fact('disputed_amount', money, 'customer', false),
        ],
        constraints: {
          deadline: '2099-01-01T00:00:00Z',
          caps: { refund: { amount: '100.00', currency: 'EUR' } },
        },
      }),
    ),
  );
}

const offer = (ref, to) =>
  holdfast.handOff({
    ref,
    caseFile: caseFileOf(ref.caseId),
    to,
    contract: refundDispute.id,
    evidence: [{ artifactId: evidence.artifactId }],
  });

/** Hands the case on as soon as this agent owns it, until it has come as far as `until`. */
async function caller(ref, until, number) {
  const outcomes = {};
  for (let turn = number; ; turn += 1) {
    const row = await holdfast.ledger.getCase(ref).catch(() => null);
    if (row !== null && row.epoch >= until) return outcomes;
    const mine = row?.owner === holdfast.url;
    const tried = mine
      ? offer(ref, peers[turn % peers.length]).then(({ state, problem }) => problem ?? state)
      : holdfast
          .note({ ref, epoch: row?.epoch ?? 1, text: 'a note from one who does not own the case' })
          .then(() => 'note');
    const outcome = await tried.catch((error) => error.code ?? String(error));
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
  }
}

// Nobody is left to say when to stop.
process.on('disconnect', () => process.exit());
process.on('message', async ({ open, contend, hand, note, arm, stop }) => {
  if (arm !== undefined) armFaults(arm);
  if (open !== undefined) {
    const { ref } = await holdfast.openCase({ caseId: open, kind: 'refund' });
    process.send({ done: ref });
  }
  if (contend !== undefined) {
    const { ref, until, callers } = contend;
    const outcomes = await Promise.all(
      Array.from({ length: callers }, (_, number) => caller(ref, until, number)),
    );
    process.send({ done: outcomes });
  }
  if (hand !== undefined) {
    const result = await offer(hand.ref, hand.to).then(
      ({ state }) => state,
      (error) => error.code ?? String(error),
    );
    process.send({ done: result });
  }
  if (note !== undefined) {
    const result = await holdfast.note({ ...note, text: 'still mine?' }).then(
      () => 'written',
      (error) => error.code,
    );
    process.send({ done: result });
  }
  if (stop !== true) return;
  await holdfast.close();
  process.disconnect();
});

await holdfast.start();
process.send({ done: 'ready' });
