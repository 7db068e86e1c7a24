// A process that uses the ledger as a node does, but speaks no A2A: light enough to be killed by the hundred. It hands cases over, both
// sides of it, and works on whatever nobody who lives works on. Plain JavaScript on the built package.
import { request } from 'node:http';
import { canonical, digestOf, handoffIdOf, newId, toUtc } from '../../dist/core/index.js';
import { runEffect } from '../../dist/handoff/effects.js';
import { openLedger } from '../../dist/storage/open.js';

const [ledgerTarget, businessSystem, triage, billing] = process.argv.slice(2);
const LEASE_MS = 2_000;
const BEAT_MS = 500;
const LANES = 2;
const amount = { amount: '49.00', currency: 'EUR' };
const contract = 'refund-dispute/1';
const tenant = 'default';

const ledger = await openLedger(ledgerTarget);
const holder = `${billing}#${newId('run')}`;
await ledger.heartbeat(holder, LEASE_MS);
setInterval(() => ledger.heartbeat(holder, LEASE_MS).catch(refused), BEAT_MS);

function refused(error) {
  process.send({ refused: error.code ?? String(error) });
}

function ask(method, key) {
  return new Promise((resolve, reject) => {
    request(businessSystem, { method, headers: { 'idempotency-key': key } }, (response) => {
      let text = '';
      response.on('data', (part) => {
        text += part;
      });
      response.on('end', () => resolve(JSON.parse(text)));
    })
      .on('error', reject)
      .end();
  });
}

async function handOver(caseId) {
  const ref = { tenant, root: triage, caseId };
  await ledger.openCase({ ref, kind: 'refund', owner: triage, epoch: 1, actor: triage });
  const envelope = { goal: 'refund duplicate charge', caseId };
  const { key } = await ledger.intendOffer({
    ref,
    writer: triage,
    epoch: 1,
    attempt: 1,
    toAgent: billing,
    contract,
    skill: 'refund-dispute',
    digest: digestOf(envelope),
    message: canonical(envelope),
    acceptBy: toUtc(new Date(Date.now() + 3_600_000)),
    withheld: [],
    loggable: {},
  });
  await decide(await ledger.markOffered(key));
}

/** What both sides do about an offer that was sent, or may have been. */
async function decide(offer) {
  const { key, ref, digest, acceptBy, message, epoch } = offer;
  const at = toUtc(new Date());
  const result = await ledger.accept({
    key,
    ref,
    kind: 'refund',
    toAgent: billing,
    epoch,
    digest,
    contract,
    acceptBy,
    constraints: { caps: { refund: amount }, prohibitions: [], operations: ['refund'] },
    hops: [triage],
    tasksLeft: 4,
    envelope: message,
    workId: newId('work'),
    answer: JSON.stringify({ receipt: digest }),
    task: {
      id: newId('task'),
      contextId: handoffIdOf(ref.caseId, epoch),
      state: 'TASK_STATE_COMPLETED',
      statusAt: at,
      task: '{}',
    },
    principal: { agent: triage, tenant, tokenId: newId('run') },
    loggable: {},
  });
  if (result.outcome !== 'accepted' && result.decision?.verdict !== 'accepted') {
    process.send({ refused: result.code ?? result.outcome });
    return;
  }
  process.send({ accepted: ref.caseId });
  await ledger.recordReceipt({ key, receipt: digest, receiptKey: 'none' });
  const stale = await ledger
    .addNote({ ref, writer: triage, epoch, text: 'a note from the former owner' })
    .then(
      () => 'written',
      (error) => error.code,
    );
  if (stale === 'written') process.send({ violation: `${ref.caseId}: a stale note was written` });
  if (result.outcome !== 'accepted') return;
  const claim = { tenant, agent: billing, holder, limit: 1, workId: result.work.id };
  for (const item of await ledger.claimWork(claim)) await finish(item);
}

async function finish({ id: workId, ref, epoch }) {
  const call = `${ref.caseId} refund-pay_B`;
  try {
    await runEffect(ledger, billing, {
      ref,
      epoch,
      key: 'refund-pay_B',
      operation: 'refund',
      amount,
      perform: () => ask('POST', call),
      reconcile: async () => ((await ask('GET', call)).calls > 0 ? { outcome: null } : 'not_done'),
    });
    await ledger.settleWork({ ref, writer: billing, epoch, workId, state: 'done', result: null });
  } finally {
    // Where it was not settled, an effect of a dead process may be in flight still: somebody looks again.
    await ledger.release(holder, { tenant, workId });
  }
}

/** What dead processes have left. */
async function takeUp() {
  for (const offer of await ledger.claimOffers({ tenant, agent: triage, holder, limit: 5 })) {
    try {
      await decide(offer);
    } finally {
      await ledger.release(holder, { key: offer.key });
    }
  }
  const left = await ledger.claimWork({ tenant, agent: billing, holder, limit: 5 });
  await Promise.allSettled(left.map((item) => finish(item).catch(refused)));
}

async function lane(number, opens) {
  for (let turn = 0; ; turn += 1) {
    await takeUp().catch(refused);
    if (opens) await handOver(`CASE-${process.pid}-${Date.now()}-${number}-${turn}`).catch(refused);
    else await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

// Nobody is left to say when to stop.
process.on('disconnect', () => process.exit());
process.send({ ready: true });
process.on('message', ({ opens }) => {
  for (let number = 0; number < LANES; number += 1) void lane(number, opens);
});
