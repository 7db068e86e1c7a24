import { setTimeout as sleep } from 'node:timers/promises';
import { seeded } from '../seeded.js';
import type { CrashDatabase } from './databases.js';
import type { Verdict } from './judge.js';
import { Pair } from './pair.js';

/** Handovers that the sender has under way at the same time. */
const LANES = 3;
const LONGEST_LIFE_MS = 400;

export interface KillsResult extends Verdict {
  readonly kills: number;
}

/** Kills of whole nodes at random moments under load: one of them, or both at the same moment. */
export async function killNodes(
  database: CrashDatabase,
  count: number,
  seed: number,
  deadline: number,
): Promise<KillsResult> {
  const pair = await Pair.make(database);
  const next = seeded(seed);
  const { triage, billing } = pair;
  try {
    await pair.start();
    let done = 0;
    triage.order({ load: LANES });
    while (done < count && Date.now() < deadline) {
      await sleep(next() * LONGEST_LIFE_MS);
      const drawn = next();
      const victims = drawn < 0.45 ? [billing] : drawn < 0.9 ? [triage] : [billing, triage];
      await Promise.all(victims.map((victim) => victim.kill()));
      done += victims.length;
      const up = await Promise.all(victims.map((victim) => victim.start()));
      if (up.includes(false)) throw new Error(`a node ended at its start after ${done} kills`);
      if (victims.includes(triage)) triage.order({ load: LANES });
    }
    const verdict = await pair.settle();
    if (verdict.accepted < count / 4)
      pair.told.violations.push('too few handovers for the run to say anything');
    return { ...verdict, kills: done };
  } finally {
    await pair.close();
  }
}
