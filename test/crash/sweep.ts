import { setTimeout as sleep } from 'node:timers/promises';
import { FAULT_POINTS, type FaultPoint } from '../../src/faults/index.js';
import { seeded } from '../seeded.js';
import type { CrashDatabase } from './databases.js';
import type { Verdict } from './judge.js';
import type { How, Node } from './node.js';
import { Pair } from './pair.js';

/** How long a node has to come by the point at which it is to die. */
const REACH_MS = 20_000;
/** A handover that the background took up, or that was refused for what another left, goes another way. */
const TRIES = 3;

interface Recipe {
  readonly victim: 'triage' | 'billing';
  /** What the case is called, which says what becomes of it. */
  readonly name?: 'CASE' | 'REJECT' | 'STALL' | 'DOUBT';
  readonly how?: How;
  /** It dies on its way up, or down. */
  readonly when?: 'starting' | 'stopping';
}

/** What leads to a point that a plain handover does not come by. */
const SPECIAL: Partial<Record<FaultPoint, Recipe>> = {
  'Q1.before_resend': { victim: 'triage', name: 'STALL' },
  'W1.before_void': { victim: 'triage', name: 'STALL', how: { withdraw: true } },
  'W1.after_void': { victim: 'triage', name: 'STALL', how: { withdraw: true } },
  'R3.before_reject': { victim: 'billing', name: 'REJECT' },
  'R3.after_reject': { victim: 'billing', name: 'REJECT' },
  'R3.before_repeat': { victim: 'billing', how: { repeat: true } },
  'E4.before_reconcile': { victim: 'billing', name: 'DOUBT' },
  'E4.after_reconcile': { victim: 'billing', name: 'DOUBT' },
};

function recipeOf(point: FaultPoint, next: () => number): Recipe {
  const either = next() < 0.5 ? 'triage' : 'billing';
  if (point.startsWith('N')) return { victim: either, when: /^N[12]/.test(point) ? 'starting' : 'stopping' };
  if (point.startsWith('L')) return { victim: either };
  return SPECIAL[point] ?? { victim: /^[RE]/.test(point) ? 'billing' : 'triage' };
}

export interface SweepResult extends Verdict {
  readonly crashes: number;
}

/** One crash to be: at which point, and how often there has been one. */
export interface Crash {
  readonly point: FaultPoint;
  readonly round: number;
}

const ALL_POINTS = Object.keys(FAULT_POINTS) as FaultPoint[];
/** Those that a handover within one ledger comes by: no other has to be told, or asked. */
const SHARED_POINTS = ALL_POINTS.filter((point) => !/^(S7|W2|W3)\./.test(point));

/** The points that a handover comes by, in the mode of its kind. */
export const POINTS = { shared: SHARED_POINTS, separate: ALL_POINTS } as const;

/** A crash at every one of the points, `rounds` times each, in an order that the seed gives. */
export function everyCrash(points: readonly FaultPoint[], rounds: number, seed: number): Crash[] {
  const next = seeded(seed);
  return Array.from({ length: rounds }, (_, round) =>
    shuffled(points, next).map((point) => ({ point, round: round + 1 })),
  ).flat();
}

/** Takes one crash after the other from the list, which several sweeps may share. */
export async function sweep(
  database: CrashDatabase,
  left: Crash[],
  seed: number,
  deadline: number,
): Promise<SweepResult> {
  const next = seeded(seed);
  const pair = await Pair.make(database);
  let crashes = 0;
  try {
    await pair.start();
    for (let crash = left.shift(); crash && Date.now() < deadline; crash = left.shift()) {
      const { point, round } = crash;
      const without = await crashAt(pair, crash, next);
      if (without === null) crashes++;
      else pair.told.violations.push(`${point}: nobody died there in round ${round}: ${without}`);
    }
    return { crashes, ...(await pair.settle()) };
  } finally {
    await pair.close();
  }
}

/** `null` when the victim died there, else what came of the handovers; it is up again afterwards. */
async function crashAt(pair: Pair, { point, round }: Crash, next: () => number): Promise<string | null> {
  const { victim: role, name = 'CASE', how, when } = recipeOf(point, next);
  const victim = pair[role];
  const caseId = `${name}-${point}-${round}`;
  const outcomes: string[] = [];
  // A transaction is come by many times in one handover: any of them may be the last.
  const fault = `${point}=kill9@${point.startsWith('L') ? 1 + Math.floor(next() * 4) : 1}`;
  if (when === 'starting') {
    const handing = pair.triage.handOver(caseId);
    await sleep(next() * 60);
    await victim.kill();
    await handing;
    if (await victim.start(fault)) await dead(victim);
  } else {
    for (let tries = 0; tries < TRIES && victim.alive; tries++) {
      victim.order({ arm: fault });
      // What the other side makes of it is settled while the next case is under way.
      void pair.triage
        .handOver(tries === 0 ? caseId : `${caseId}-${tries}`, how)
        .then((outcome) => outcomes.push(outcome ?? 'its sender died'));
      if (when === 'stopping') victim.order({ stop: true });
      await dead(victim);
    }
  }
  const died = !victim.alive && victim.killedBy === 'SIGKILL';
  if (victim.alive) await victim.kill();
  if (!(await victim.start())) throw new Error(`${role} ended at its start after a crash at ${point}`);
  return died ? null : outcomes.join(', ') || 'no outcome';
}

/** Resolves when the node has ended, or had its time to come by where it was to end. */
export async function dead(victim: Node): Promise<void> {
  const late = new AbortController();
  await Promise.race([
    victim.gone,
    sleep(REACH_MS, undefined, { signal: late.signal }).catch(() => undefined),
  ]);
  late.abort();
}

function shuffled<T>(items: readonly T[], next: () => number): T[] {
  const left = [...items];
  for (let i = left.length - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [left[i], left[j]] = [left[j] as T, left[i] as T];
  }
  return left;
}
