import { setTimeout as sleep } from 'node:timers/promises';
import type { Fate, Fault, Schedule } from '../../faults/proxy.js';
import { seeded } from '../../seeded.js';
import type { TwoDatabases } from '../databases.js';
import type { How } from '../node.js';
import type { SeparateVerdict } from './judge.js';
import { Organisations, type Role } from './organisations.js';

/** Handovers under way at the same time. */
const LANES = 3;
/** The share of requests, and of replies, that something happens to. */
const STRUCK = 0.25;
const [SHORTEST_LIFE_MS, LONGEST_LIFE_MS] = [500, 2_000];
/** As long as a message is held back at most, milliseconds; and how many pass it by then. */
const [HELD_MS, OVERTAKEN_BY] = [1_500, 4];
const ROLES = ['triage', 'billing'] as const;
/** A lost message is the likeliest. */
const REPLY_FAULTS = ['drop', 'drop', 'delay', 'hold', 'cut', 'corrupt', 'half_open'] as const;
const REQUEST_FAULTS = [...REPLY_FAULTS, 'dup', 'dup'] as const;

export interface LinkResult extends SeparateVerdict {
  readonly handovers: number;
  readonly kills: number;
  /** What happened to messages, and how often. */
  readonly struck: Readonly<Record<string, number>>;
}

/**
 * Handovers there and back over two links that fail in every way, in an order that the seed gives; half of the runs with nodes that are
 * killed meanwhile.
 */
export async function failingLinks(
  databases: TwoDatabases,
  { count, kill }: { readonly count: number; readonly kill: boolean },
  seed: number,
  deadline: number,
): Promise<LinkResult> {
  const next = seeded(seed);
  const both = await Organisations.make(databases, seeded(seed + 1));
  const struck: Record<string, number> = {};
  let [handovers, kills, left] = [0, 0, count];

  const lane = async (number: number): Promise<void> => {
    for (let turn = 0; left > 0 && Date.now() < deadline; turn++) {
      left--;
      handovers++;
      await handOver(both, `${number}-${turn}`, next);
    }
  };

  try {
    await both.start();
    for (const role of ROLES) both.links[role].schedule = failing(next, struck);
    const lanes = Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
    let over = false;
    const end = () => {
      over = true;
    };
    lanes.then(end, end);
    while (kill && !over) {
      await sleep(SHORTEST_LIFE_MS + next() * (LONGEST_LIFE_MS - SHORTEST_LIFE_MS));
      const drawn = next();
      const victims: readonly Role[] = drawn < 0.4 ? ['triage'] : drawn < 0.8 ? ['billing'] : ROLES;
      await Promise.all(victims.map((role) => both.nodes[role].kill()));
      kills += victims.length;
      const up = await Promise.all(victims.map((role) => both.restart(role)));
      if (up.includes(false)) throw new Error(`a node ended at its start after ${kills} kills`);
    }
    await lanes;
    return { handovers, kills, struck, ...(await both.settle({ corrupting: true })) };
  } finally {
    await both.close();
  }
}

/** One case, there and perhaps back; what comes of it while the links fail is whatever it is. */
async function handOver(both: Organisations, id: string, next: () => number): Promise<void> {
  const returns = next() < 0.5;
  const drawn = next();
  const [what, how] = variant(drawn, next);
  const caseId = `${what}${returns ? 2 : 1}-${id}`;
  try {
    const there = await both.handOver('triage', caseId, returns ? {} : how);
    // Also where its sender does not know yet that it was accepted: the receipt comes along.
    if (returns && (there === 'accepted' || next() < 0.5)) await both.handOver('billing', caseId, how);
  } finally {
    both.watch.finish(caseId);
  }
}

function variant(drawn: number, next: () => number): readonly [what: string, how: How] {
  if (drawn < 0.35) return ['CASE', {}];
  if (drawn < 0.6) return ['RACE', { withdraw: Math.floor(next() * 80) }];
  if (drawn < 0.75) return ['LATE', { acceptWithinMs: 400 }];
  if (drawn < 0.85) return ['REJECT', {}];
  return ['SLOW', { withdraw: 20 }];
}

function faultOf(kind: Fault['do'], next: () => number, overtaken: () => Promise<unknown>): Fault {
  switch (kind) {
    case 'delay':
      return { do: kind, ms: Math.floor(next() * 300) };
    case 'hold':
      return { do: kind, until: overtaken() };
    case 'cut':
      return { do: kind, bytes: 1 + Math.floor(next() * 1_500) };
    case 'corrupt':
      return { do: kind, offset: Math.floor(next() * 5_000) };
    case 'dup':
      return { do: kind, times: 3 };
    case 'throttle':
      return { do: kind, bytesPerSecond: 100_000 };
    default:
      return { do: kind };
  }
}

/** Each request and each reply is struck by what the seed gives; `struck` counts by what. */
function failing(next: () => number, struck: Record<string, number>): Schedule {
  const waiting = new Set<{ left: number; go: () => void }>();
  const overtaken = () =>
    new Promise<void>((resolve) => {
      const one = {
        left: OVERTAKEN_BY,
        go: () => {
          waiting.delete(one);
          resolve();
        },
      };
      waiting.add(one);
      setTimeout(one.go, HELD_MS).unref();
    });
  const pick = (which: 'request' | 'reply'): Fate => {
    if (next() >= STRUCK) return {};
    const kinds = which === 'request' ? REQUEST_FAULTS : REPLY_FAULTS;
    const fault = faultOf(kinds[Math.floor(next() * kinds.length)] as Fault['do'], next, overtaken);
    const name = `${which} ${fault.do}`;
    struck[name] = (struck[name] ?? 0) + 1;
    return { [which]: fault };
  };
  return () => {
    for (const one of waiting) if (--one.left === 0) one.go();
    return { ...pick('request'), ...pick('reply') };
  };
}
