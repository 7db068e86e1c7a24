// One node under fire. Plain JavaScript on the built package, so that it starts quickly and is what users run.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { armFaults } from '../../dist/faults/index.js';
import {
  clarify,
  decideLater,
  openHoldfast,
  parseCaseFile,
  refundDispute,
  reject,
} from '../../dist/index.js';
import { amount, answerAndDecide, caseOf, deliverAgain } from './case.mjs';

/** `second`: the agent that is asked where billing does not take a case; only where there is one. */
const [role, dir, peer, target, second] = process.argv.slice(2);
// What a dead process worked on is free again soon: every crash would otherwise wait for the lease of the one before.
const pace = { leaseMs: 2_000, beatMs: 500, sweepMs: 500, workRetriesMs: [500, 500, 1_000, 2_000, 5_000] };
const holdfast = await openHoldfast({ dir, ports: { pace } });
/** A line for each delivery of an offer that was stalled: as many as there are to be, however often the process dies meanwhile. */
const stalls = join(dir, 'stalls');
const stalled = (caseId) => {
  const seen = existsSync(stalls) ? readFileSync(stalls, 'utf8').split('\n') : [];
  return seen.filter((line) => line === caseId).length;
};
/** Between two looks at what is not decided, and how many of them a handover waits for. */
const LOOK_MS = 200;
const LOOKS = 20;
let running = true;
let lanes = [];

const ask = async (method, key) => {
  const answer = await fetch(target, { method, headers: { 'idempotency-key': key } });
  return answer.json();
};

// What a case is called says what becomes of it.
const is = (caseId, ...names) => names.some((name) => caseId.startsWith(name));
const refuses = (caseId) => is(caseId, 'REJECT', 'PERSON') || (role === 'billing' && is(caseId, 'NEXT'));

if (role !== 'triage') {
  holdfast.onHandoff(refundDispute.id, {
    check({ caseId, clarifications }) {
      if (refuses(caseId)) return reject('records_disagree', 'There is no such payment.');
      if (is(caseId, 'ASK') && clarifications.length === 0) return clarify('By which channel did it come?');
      if (is(caseId, 'LATER')) return decideLater();
      // As often as a sender tries by itself: the offer stays open.
      if (is(caseId, 'STALL') && stalled(caseId) < 3) {
        appendFileSync(stalls, `${caseId}\n`);
        throw new Error('out of order');
      }
      return { verdict: 'accept' };
    },
    async work(work) {
      const { caseId } = work.ref;
      const refund = {
        key: 'refund-pay_B',
        operation: 'refund',
        amount,
        reconcile: async (key) => {
          const { calls } = await ask('GET', `${caseId} ${key}`);
          return calls > 0 ? { outcome: null } : 'not_done';
        },
      };
      let answered = !is(caseId, 'DOUBT');
      const perform = async (key) => {
        await ask('POST', `${caseId} ${key}`);
        if (!answered) throw new Error('the answer of the business system was lost');
      };
      try {
        await work.effect({ ...refund, perform });
      } catch (error) {
        if (answered) throw error;
        answered = true;
        await work.effect({ ...refund, perform });
      }
      await work.done({ decision: 'refunded' });
    },
  });
}

/** Opens the case where it is not yet open, and offers it. */
async function handOver(caseId, { repeat = false, withdraw = false } = {}) {
  // Before the case is opened: one that could never be offered would only swell the count.
  await holdfast.checkPeer(peer, refundDispute.id);
  const ref = holdfast.caseRef(caseId);
  if ((await holdfast.ledger.getCase(ref)) === null) await holdfast.openCase({ caseId, kind: 'refund' });
  const evidence = await holdfast.addEvidence(Buffer.from(`charged twice, case ${caseId}`), {
    filename: 'claim.txt',
    mediaType: 'text/plain',
  });
  let result = await holdfast.handOff({
    ref,
    caseFile: parseCaseFile(Buffer.from(JSON.stringify(caseOf(caseId)))),
    to: is(caseId, 'NEXT', 'PERSON') ? [peer, second] : peer,
    ...(is(caseId, 'PERSON') ? { escalateTo: 'ann' } : {}),
    waiting: is(caseId, 'QUEUE') ? 'queued' : 'blocking',
    contract: refundDispute.id,
    evidence: [{ artifactId: evidence.artifactId }],
  });
  const { key } = result.offer;
  result = await whenDecided(result);
  if (withdraw) result = await holdfast.voidOffer(key, 'no answer');
  if (repeat) await deliverAgain(holdfast, peer, result.offer.message);
  process.send({ caseId, state: result.state, code: result.code ?? result.problem ?? null });
  // The new owner is its receiver, or a person where nobody took it.
  if ((await holdfast.ledger.getCase(ref)).owner === holdfast.url) return;
  const stale = await holdfast.note({ ref, epoch: 1, text: 'a note from the former owner' }).then(
    () => 'written',
    (error) => error.code,
  );
  if (stale === 'written') process.send({ caseId, violation: 'a stale note was written' });
}

/** Its receiver has it and does not decide at once: it is asked about, waits for a person, or is checked behind. */
async function whenDecided(result) {
  for (let looks = 0; result.state === 'open' && result.problem === null && looks < LOOKS; looks += 1) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    result = await holdfast.resend(result.offer.key);
  }
  return result;
}

async function attempt(caseId, how) {
  try {
    await handOver(caseId, how);
  } catch (error) {
    // The other node or the database may be dead: what was not stored is begun again, what was stored is finished by others.
    process.send({ caseId, refused: error.code ?? String(error) });
  }
}

async function lane(number) {
  for (let turn = 0; running; turn += 1) {
    const before = performance.now();
    await attempt(`CASE-${process.pid}-${Date.now()}-${number}-${turn}`);
    if (performance.now() - before < 20) await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function keepDeciding() {
  while (running) {
    // Another may be quicker, and the other node or the database dead: the next look tells.
    await answerAndDecide(holdfast).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

// Nobody is left to say when to stop.
process.on('disconnect', () => process.exit());
process.on('message', async ({ arm, hand, how, load, stop }) => {
  if (arm !== undefined) armFaults(arm);
  if (hand !== undefined) await attempt(hand, how);
  if (load !== undefined) lanes = Array.from({ length: load }, (_, number) => lane(number));
  if (stop !== true) return;
  running = false;
  await Promise.allSettled([...lanes, deciding]);
  await holdfast.close();
  process.disconnect();
});

await holdfast.start();
const deciding = keepDeciding();
process.send({ ready: true });
