// The node of one organisation, with a ledger of its own, under fire. All the time it tries to act on every case it is told of.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { armFaults } from '../../../dist/faults/index.js';
import {
  clarify,
  EffectNotDone,
  openHoldfast,
  parseCaseFile,
  refundDispute,
  reject,
} from '../../../dist/index.js';
import { amount, caseOf, deliverAgain } from '../case.mjs';
import { askedFor, keepAnswering, untilDecided, wayOf } from './asked.mjs';

const [, dir, peer, decliner, root, target, port, effectLimitMs] = process.argv.slice(2);
const pace = {
  leaseMs: 1_500,
  beatMs: 300,
  sweepMs: 300,
  offerBackoffMs: [100, 1_000],
  workRetriesMs: [300, 500, 1_000, 2_000, 2_000, 2_000, 2_000, 5_000],
};
const holdfast = await openHoldfast({ dir, ports: { pace } });
const cent = { amount: '0.01', currency: 'EUR' };
/** As many effects as a case may see of one process: they all travel with it. */
const MOST_PROBES = 4;
const REFUSED_MS = 60;
const ADMITTED_MS = 25;
/** The longer nothing comes of a case, the less often it is tried. */
const SLOWER = 1.25;
const SLOWEST_MS = 600;
/** Whoever offers it later wants it to be taken. */
const LATE_MS = 60_000;
/** While these are what stands in its way, a case is offered again. */
const PASSING = ['effect_in_flight', 'case_changed'];
const PASSING_MS = 25;
const MOST_OFFERS = 120;
/** Its peer may be dead for longer than anybody would wait. */
const UNREACHED = ['peer_unreachable', 'peer_incompatible', 'peer_error'];
const MOST_UNREACHED = 3;

/** The same for the same case, between 0 and 1. */
function drawnFor(caseId) {
  let hash = 2_166_136_261;
  for (const character of caseId) hash = Math.imul(hash ^ character.charCodeAt(0), 16_777_619);
  return (hash >>> 0) / 4_294_967_296;
}

/** A line for each delivery of an offer that was stalled: as many as there are to be, however often the process dies meanwhile. */
const stalls = join(dir, 'stalls');
function stall(caseId) {
  const seen = existsSync(stalls) ? readFileSync(stalls, 'utf8').split('\n') : [];
  if (seen.filter((line) => line === caseId).length >= 3) return;
  appendFileSync(stalls, `${caseId}\n`);
  throw new Error('out of order');
}

async function call(method, caseId, key, more = {}) {
  const headers = { 'x-case': caseId, 'idempotency-key': key, ...more };
  const answer = await fetch(target, { method, headers });
  return answer.json();
}

/** An effect that happens at the target before its limit, or not at all. */
function effectOn(ref, epoch, key, more = {}) {
  const until = Number(process.hrtime.bigint() / 1_000n) / 1_000 + Number(effectLimitMs);
  const headers = { 'x-agent': holdfast.url, 'x-epoch': String(epoch), 'x-until': String(until) };
  return {
    ref,
    epoch,
    key,
    operation: 'refund',
    amount: cent,
    perform: async () => {
      const { late } = await call('POST', ref.caseId, key, headers);
      if (late) throw new EffectNotDone();
    },
    ...more,
  };
}

holdfast.onHandoff(refundDispute.id, {
  async check(view) {
    const { caseId, envelope } = view;
    const what = askedFor(view);
    const drawn = drawnFor(caseId);
    if (what === 'REJECT' || what === 'PERSON')
      return reject('records_disagree', 'There is no such payment.');
    if (what === 'ASK' && view.clarifications.length === 0) return clarify('Through which channel?');
    if (envelope.attempt === 1) {
      // As often as a sender tries by itself: the offer stays open.
      if (what === 'STALL') stall(caseId);
      if (what === 'SLOW') await sleep(200 + 200 * drawn);
      if (what === 'RACE') await sleep(60 * drawn);
      if (what === 'LATE' && Date.parse(envelope.accept_by) - Date.now() < LATE_MS) {
        await sleep(500 * drawn);
        if (drawn < 0.5) throw new Error('out of order');
      }
    }
    return { verdict: 'accept' };
  },
  async work(work) {
    const { ref, epoch } = work;
    const { caseId } = ref;
    const what = askedFor({ caseId, envelope: { epoch: epoch - 1 } });
    const reconcile = async (key) => {
      const { calls } = await call('GET', caseId, key);
      return calls > 0 ? { outcome: null } : 'not_done';
    };
    // Once over all owners, and once for each of them.
    await work.effect(effectOn(ref, epoch, 'refund-pay_B', { amount, reconcile }));
    const receipt = effectOn(ref, epoch, `letter-${epoch}`, { reconcile });
    const lost = async () => {
      await receipt.perform();
      throw new Error('the answer of the business system was lost');
    };
    if (what === 'DOUBT') await work.effect({ ...receipt, perform: lost }).catch(() => undefined);
    await work.effect(receipt);
    await work.done({ decision: 'refunded' });
  },
});

/** Cases that are to be offered, and leave no effect in their own way. */
const quiet = new Set();

const refOf = (caseId) => holdfast.caseRef(caseId, root);
const isOut = async (caseId) =>
  (await holdfast.ledger.listOffers('default', { caseId, open: true, limit: 1 })).length > 0;

/** Opens the case where it is not yet open, and offers it. */
async function offer(caseId, acceptWithinMs) {
  const ref = refOf(caseId);
  let row = await holdfast.ledger.getCase(ref);
  if (holdfast.url === root) row ??= await holdfast.openCase({ caseId, kind: 'refund' });
  const evidence = await holdfast.addEvidence(Buffer.from(`charged twice, case ${caseId}`), {
    filename: 'claim.txt',
    mediaType: 'text/plain',
  });
  const caseFile = parseCaseFile(Buffer.from(JSON.stringify(caseOf(caseId))));
  const evidenceOf = [{ artifactId: evidence.artifactId }];
  const way = wayOf(askedFor({ caseId, envelope: { epoch: row?.epoch } }), peer, decliner);
  const input = {
    ...{ ref, caseFile, contract: refundDispute.id, evidence: evidenceOf, acceptWithinMs },
    ...way,
  };
  try {
    for (let tries = 1; ; tries += 1) {
      try {
        return await holdfast.handOff(input);
      } catch (error) {
        const most = PASSING.includes(error.code)
          ? MOST_OFFERS
          : UNREACHED.includes(error.code)
            ? MOST_UNREACHED
            : 1;
        if (tries >= most) throw error;
        quiet.add(caseId);
        await sleep(PASSING_MS);
      }
    }
  } finally {
    quiet.delete(caseId);
  }
}

/** Takes back what is on its way, `afterMs` after it was stored; nothing where it came to nothing before that. */
async function takeBack(caseId, afterMs, offered) {
  let over = false;
  const end = () => {
    over = true;
  };
  offered.then(end, end);
  while (!over) {
    const [out] = await holdfast.ledger.listOffers('default', { caseId, open: true, limit: 1 });
    if (out) {
      await sleep(afterMs);
      return holdfast.voidOffer(out.key, 'another is asked');
    }
    await sleep(5);
  }
  return null;
}

const FINAL = ['accepted', 'rejected', 'withdrawn', 'expired'];

async function handOver(caseId, { repeat = false, withdraw, acceptWithinMs } = {}) {
  const offered = offer(caseId, acceptWithinMs);
  const takenBack = withdraw === undefined ? null : takeBack(caseId, withdraw, offered).catch(() => null);
  let result = await untilDecided(holdfast, await offered);
  if (repeat) await deliverAgain(holdfast, peer, result.offer.message);
  const back = await takenBack;
  if (back?.state) {
    // Each is told what stands, whichever of the two was first.
    const said = [result.state, back.state].filter((state) => FINAL.includes(state));
    if (said.length === 2 && said.includes('accepted') && said[0] !== said[1]) {
      process.send({ caseId, violation: `H4: its sender was told ${said.join(' and ')}` });
    }
    result = back;
  }
  const { state, code, problem, epoch } = result;
  process.send({ caseId, state, code: code ?? problem ?? null, epoch: epoch ? String(epoch) : '' });
}

async function attempt(caseId, how) {
  try {
    await handOver(caseId, how);
  } catch (error) {
    // The other node may be dead: what was not stored is begun again, what was stored is finished by others.
    process.send({ caseId, refused: error.code ?? String(error) });
  }
}

/** The cases on which it tries to act, and how often it could. */
const probed = new Map();
let probes = 0;

/** Tries to act on the case, whoever owns it: the ledger has to know whether it may. */
async function probe(caseId) {
  const row = await holdfast.ledger.getCase(refOf(caseId));
  if (row === null || (quiet.has(caseId) && !(await isOut(caseId)))) return REFUSED_MS;
  const done = probed.get(caseId);
  if (done >= MOST_PROBES && row.owner === holdfast.url && !(await isOut(caseId))) return REFUSED_MS;
  probes += 1;
  try {
    await holdfast.effect(effectOn(row.ref, row.epoch, `probe-${process.pid}-${probes}`));
    if (probed.has(caseId)) probed.set(caseId, done + 1);
    return ADMITTED_MS;
  } catch {
    return REFUSED_MS;
  }
}

async function keepProbing(caseId) {
  let [waitMs, slower] = [0, 1];
  while (running && probed.has(caseId)) {
    await sleep(waitMs);
    const rest = await probe(caseId).catch(() => REFUSED_MS);
    slower = rest === ADMITTED_MS ? 1 : slower * SLOWER;
    waitMs = Math.min(SLOWEST_MS, rest * slower) * (0.5 + Math.random());
  }
}

function probeOnly(caseIds) {
  for (const caseId of probed.keys()) if (!caseIds.includes(caseId)) probed.delete(caseId);
  for (const caseId of caseIds.filter((one) => !probed.has(one))) {
    probed.set(caseId, 0);
    void keepProbing(caseId);
  }
}

let running = true;

// Nobody is left to say when to stop.
process.on('disconnect', () => process.exit());
process.on('message', async ({ arm, hand, how, probe: caseIds, stop }) => {
  if (arm !== undefined) armFaults(arm);
  if (caseIds !== undefined) probeOnly(caseIds);
  if (hand !== undefined) await attempt(hand, how);
  if (stop !== true) return;
  running = false;
  await holdfast.close();
  process.disconnect();
});

await holdfast.start({ port: Number(port) });
void keepAnswering(holdfast, () => (running ? [...probed.keys()] : null));
process.send({ ready: true });
