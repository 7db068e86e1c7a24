import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultPoint } from '../../../src/faults/index.js';
import { seeded } from '../../seeded.js';
import type { TwoDatabases } from '../databases.js';
import type { How } from '../node.js';
import { type Crash, dead } from '../sweep.js';
import type { SeparateVerdict } from './judge.js';
import { Organisations, type Role } from './organisations.js';

/** A handover that was refused for what another left, or that the background took up, goes another way. */
const TRIES = 3;

/** What a case is called says what becomes of it at its receiver. */
type What =
  | 'CASE'
  | 'REJECT'
  | 'STALL'
  | 'SLOW'
  | 'RACE'
  | 'LATE'
  | 'DOUBT'
  | 'QUEUE'
  | 'ASK'
  | 'LIST'
  | 'PERSON';

interface Recipe {
  readonly victim: 'sender' | 'receiver';
  readonly what?: What;
  readonly how?: How;
  /** Offers do not reach the receiver, nor does anything that is said of them. */
  readonly cutOff?: boolean;
  /** It dies on its way up, or down. */
  readonly when?: 'starting' | 'stopping';
}

const TAKEN_BACK: Recipe = { victim: 'sender', what: 'SLOW', how: { withdraw: 20 } };
const IN_DOUBT: Recipe = { victim: 'sender', how: { withdraw: 0 }, cutOff: true };
/** Its sender does not wait, or is asked something first. */
const UNDECIDED: readonly Recipe[] = [
  { victim: 'receiver', what: 'QUEUE' },
  { victim: 'receiver', what: 'ASK' },
];
const ASKED: Recipe = { victim: 'sender', what: 'ASK' };
/** The first of a list takes nothing: the next does, or a person gets it. */
const LISTED: Recipe = { victim: 'sender', what: 'LIST' };
const ESCALATED: Recipe = { victim: 'sender', what: 'PERSON' };
const REJECTED: Recipe = { victim: 'sender', what: 'REJECT' };

/** What leads to a point that a plain handover does not come by. */
const SPECIAL: Partial<Record<FaultPoint, readonly Recipe[]>> = {
  'S7.before_close': [REJECTED, TAKEN_BACK],
  'S7.after_close': [TAKEN_BACK, REJECTED],
  'Q1.before_resend': [{ victim: 'sender', what: 'STALL' }],
  'A1.after_commit': [ASKED],
  'A1.before_answer': [ASKED],
  'C1.before_step': [LISTED, ESCALATED],
  'C2.before_escalation': [ESCALATED],
  'C2.after_escalation': [ESCALATED],
  'R2.before_store': UNDECIDED,
  'R2.stored': UNDECIDED,
  'R2.before_judging': UNDECIDED,
  'R2.answered': [{ victim: 'receiver', what: 'ASK' }],
  'W1.before_void': [TAKEN_BACK, IN_DOUBT],
  'W1.after_void': [TAKEN_BACK, IN_DOUBT],
  'W2.before_doubt': [IN_DOUBT],
  'W2.after_doubt': [IN_DOUBT],
  'W3.before_tombstone': [{ ...TAKEN_BACK, victim: 'receiver' }],
  'W3.after_tombstone': [{ ...TAKEN_BACK, victim: 'receiver' }],
  'R3.before_reject': [{ victim: 'receiver', what: 'REJECT' }],
  'R3.after_reject': [{ victim: 'receiver', what: 'REJECT' }],
  'R3.before_repeat': [{ victim: 'receiver', how: { repeat: true } }],
  'E4.before_reconcile': [{ victim: 'receiver', what: 'DOUBT' }],
  'E4.after_reconcile': [{ victim: 'receiver', what: 'DOUBT' }],
};

/** Points by which an offer comes also where it is taken back as it is being accepted, or is past its time by then. */
const ANY_OFFER = /^(S[345]|R[1-4]|W1|L|Q1|S7)/;

function recipeOf(point: FaultPoint, turn: number, next: () => number): Recipe {
  const victim = next() < 0.5 ? 'sender' : 'receiver';
  if (point.startsWith('N')) return { victim, when: /^N[12]/.test(point) ? 'starting' : 'stopping' };
  const side = point.startsWith('L') ? victim : /^[RE]/.test(point) ? 'receiver' : 'sender';
  const special = SPECIAL[point];
  const recipe: Recipe = special?.[turn % special.length] ?? { victim: side };
  if (!ANY_OFFER.test(point)) return recipe;
  const drawn = next();
  const how = { withdraw: Math.floor(next() * 60) };
  if (special === undefined && drawn < 0.3) return { victim: side, what: 'RACE', how };
  if (special === undefined && drawn > 0.7)
    return { victim: side, what: drawn < 0.8 ? 'QUEUE' : drawn < 0.9 ? 'ASK' : 'LIST' };
  const isLate = drawn < 0.5 && /^(S[34]|R1|W1|L|Q1|S7)/.test(point);
  return isLate ? { victim: side, what: 'LATE', how: { acceptWithinMs: 400 } } : recipe;
}

export interface SeparateSweepResult extends SeparateVerdict {
  readonly crashes: number;
  /** Of cases that were on their way back to their root. */
  readonly returning: number;
}

/** Takes one crash after the other from the list, which several sweeps may share. */
export async function separateSweep(
  databases: TwoDatabases,
  left: Crash[],
  seed: number,
  deadline: number,
): Promise<SeparateSweepResult> {
  const next = seeded(seed);
  const both = await Organisations.make(databases, seeded(seed + 1));
  let [crashes, returning] = [0, 0];
  try {
    await both.start();
    for (let crash = left.shift(); crash && Date.now() < deadline; crash = left.shift()) {
      const leg = next() < 0.5 ? 1 : 2;
      const without = await crashAt(both, crash, leg, next);
      if (without === null) {
        crashes++;
        if (leg === 2) returning++;
      } else {
        both.told.violations.push(`${crash.point}: nobody died there in round ${crash.round}: ${without}`);
      }
    }
    return { crashes, returning, ...(await both.settle()) };
  } finally {
    await both.close();
  }
}

/** `null` when the victim died there, else what came of the handovers; it is up again afterwards. */
async function crashAt(
  both: Organisations,
  { point, round }: Crash,
  leg: 1 | 2,
  next: () => number,
): Promise<string | null> {
  const recipe = recipeOf(point, round, next);
  const [sender, receiver]: readonly [Role, Role] = leg === 1 ? ['triage', 'billing'] : ['billing', 'triage'];
  const role = recipe.victim === 'sender' ? sender : receiver;
  const victim = both.nodes[role];
  const outcomes: string[] = [];
  // A transaction is come by many times in one handover: any of them may be the last.
  const fault = `${point}=kill9@${point.startsWith('L') ? 1 + Math.floor(next() * 4) : 1}`;
  const begun: string[] = [];
  // What leads there surely, where the turn that was drawn does not.
  const plain: Recipe = SPECIAL[point]?.[0] ?? { victim: recipe.victim };
  const begin = async (tries: number, { what = 'CASE' }: Recipe): Promise<string> => {
    const caseId = `${what}${leg}-${point}-${round}${tries === 0 ? '' : `-${tries}`}`;
    begun.push(caseId);
    for (let again = 0; leg === 2 && again < TRIES; again++) {
      const outcome = await both.handOver('triage', caseId);
      if (outcome === 'accepted') break;
      outcomes.push(`there ${outcome}`);
      await sleep(200);
    }
    return caseId;
  };
  if (recipe.when === 'starting') {
    const handing = both.handOver(sender, await begin(0, recipe));
    await sleep(next() * 60);
    await victim.kill();
    await handing;
    if (await both.restart(role, fault)) await dead(victim);
  } else {
    for (let tries = 0; tries < TRIES && victim.alive; tries++) {
      const now: Recipe = tries === 0 ? recipe : plain;
      await both.heard();
      const caseId = await begin(tries, now);
      if (now.cutOff)
        both.links[receiver].schedule = ({ method }) =>
          method === 'POST' ? { request: { do: 'drop' } } : {};
      victim.order({ arm: fault });
      // What the other side makes of it is settled while the next case is under way.
      void both
        .handOver(sender, caseId, now.how)
        .then((outcome) => outcomes.push(outcome ?? 'its sender died'));
      if (recipe.when === 'stopping') victim.order({ stop: true });
      await dead(victim);
      both.links[receiver].schedule = () => ({});
    }
  }
  const died = !victim.alive && victim.killedBy === 'SIGKILL';
  if (victim.alive) await victim.kill();
  if (!(await both.restart(role))) throw new Error(`${role} ended at its start after a crash at ${point}`);
  for (const caseId of begun) both.watch.finish(caseId);
  return died ? null : outcomes.join(', ') || 'no outcome';
}
