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

/** Kills of whole nodes at random moments under load. Each node dies for itself, so that at times none is up. */
export async function kills(database: CrashDatabase, count: number, seed: number): Promise<KillsResult> {
  const pair = await Pair.make(database);
  try {
    await pair.start();
    let begun = 0;
    let done = 0;
    await Promise.all(
      pair.nodes.map(async (node, at) => {
        const next = seeded(seed + at);
        while (begun < count) {
          begun++;
          node.order({ load: LANES });
          await sleep(next() * LONGEST_LIFE_MS);
          await node.kill();
          done++;
          if (!(await node.start())) throw new Error(`${node.role} ended at its start after ${done} kills`);
        }
      }),
    );
    const verdict = await pair.settle();
    if (verdict.accepted < count / 4)
      pair.told.violations.push('too few handovers for the run to say anything');
    return { ...verdict, kills: done };
  } finally {
    await pair.close();
  }
}
