import { strict as assert } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import { type Clock, isHoldfastError } from '../../src/core/index.js';
import type { CaseRef, HandOffResult } from '../../src/index.js';
import { type Linked, startLinked } from './linked.js';
import type { FaultCase } from './run.js';

const HOUR_MS = 3_600_000;

/** The system's time, and how far somebody has set it off. */
class SetClock implements Clock {
  offMs = 0;

  now(): Date {
    return new Date(Date.now() + this.offMs);
  }
}

/** How an offer may end that was made while the clock was off: somebody's expiry or token was not what it should be, or none mattered. */
const DECIDED = [
  'accepted',
  'rejected offer_expired',
  'rejected evidence_expired',
  'rejected evidence_unreadable',
  'expired',
];
/** Besides, while it is off nobody may be believed. */
const MEANWHILE = [...DECIDED, 'open unauthenticated'];

async function outcomeOf(handOff: Promise<HandOffResult>): Promise<string> {
  try {
    const result = await handOff;
    if (result.state === 'rejected') return `rejected ${result.code}`;
    return result.state === 'open' ? `open ${result.problem}` : result.state;
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    return `refused ${error.code}`;
  }
}

function clockCase(who: readonly ('triage' | 'billing')[], byMs: number): FaultCase {
  const side = who.length === 2 ? 'both nodes' : `${who[0]}`;
  return {
    name: `clock of ${side} set ${byMs > 0 ? 'ahead' : 'back'} by an hour, and right again`,
    async run() {
      const clocks = { triage: new SetClock(), billing: new SetClock() };
      const linked = await startLinked(clocks);
      try {
        const set = (off: number) => {
          for (const name of who) clocks[name].offMs = off;
        };
        const refs: CaseRef[] = [];
        const handOver = async (caseId: string): Promise<string> => {
          const ref = await linked.open(caseId);
          refs.push(ref);
          return outcomeOf(linked.handOff(ref));
        };
        assert.equal(await handOver('CASE-BEFORE'), 'accepted');
        set(byMs);
        const meanwhile = await handOver('CASE-MEANWHILE');
        assert.ok(MEANWHILE.includes(meanwhile), `answered ${meanwhile} meanwhile`);
        set(0);
        if (meanwhile.startsWith('open')) await resendUntilDecided(linked, refs[1] as CaseRef);
        assert.equal(await handOver('CASE-AFTER'), 'accepted');
        for (const ref of refs) await assertWhole(linked, ref);
        return meanwhile;
      } finally {
        await linked.close();
      }
    },
  };
}

async function resendUntilDecided(linked: Linked, ref: CaseRef): Promise<void> {
  for (let tries = 0; tries < 20; tries += 1) {
    const { offers } = await linked.snapshot(ref);
    const [offer] = offers;
    assert.ok(offer, 'the offer is gone');
    if (DECIDED.includes(await outcomeOf(linked.triage.resend(offer.key)))) return;
    await sleep(200);
  }
  assert.fail('the offer is not decided with the clock right again');
}

/** One owner, as the audit tells it, and no effect twice. */
async function assertWhole(linked: Linked, ref: CaseRef): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    const snapshot = await linked.snapshot(ref);
    if (snapshot.work.some(({ state }) => state === 'open') && tries < 100) {
      await sleep(50);
      continue;
    }
    assert.ok(verifyChain(snapshot.audit).ok);
    assert.deepEqual(compareWithLedger(replay(snapshot.audit), snapshot), []);
    const accepted = snapshot.decisions.filter(({ verdict }) => verdict === 'accepted').length;
    assert.equal(snapshot.case?.epoch, 1 + accepted);
    assert.equal(linked.effects.get(`${ref.caseId} refund-pay_B`) ?? 0, accepted);
    return;
  }
}

export const CLOCK_CASES: readonly FaultCase[] = (
  [['triage'], ['billing'], ['triage', 'billing']] as const
).flatMap((who) => [clockCase(who, HOUR_MS), clockCase(who, -HOUR_MS)]);
