import { setTimeout as sleep } from 'node:timers/promises';
import { seeded } from '../seeded.js';
import type { PostgresDatabase } from './databases.js';
import type { Verdict } from './judge.js';
import { Pair } from './pair.js';

const LANES = 8;
/** Long enough for both nodes to have a connection again and to be at work. */
const SHORTEST_LIFE_MS = 250;
const LONGEST_LIFE_MS = 750;

export interface StopsResult extends Verdict {
  readonly stops: number;
  /** Handovers whose sender was told that their outcome is not known. */
  readonly unknown: number;
}

/** Stops the database at random moments under load without letting it finish anything; the nodes live on. */
export async function stops(
  database: PostgresDatabase,
  count: number,
  seed: number,
  deadline: number,
): Promise<StopsResult> {
  const pair = await Pair.make(database);
  const next = seeded(seed);
  try {
    await pair.start();
    pair.triage.order({ load: LANES });
    let done = 0;
    for (; done < count && Date.now() < deadline; done++) {
      await sleep(SHORTEST_LIFE_MS + next() * (LONGEST_LIFE_MS - SHORTEST_LIFE_MS));
      await database.server.stop('immediate');
      await database.server.start();
      for (const node of pair.nodes) {
        if (!node.alive) throw new Error(`${node.role} ended when its database was stopped`);
      }
    }
    const verdict = await pair.settle();
    if (verdict.accepted < count) pair.told.violations.push('too few handovers for the run to say anything');
    return { ...verdict, stops: done, unknown: pair.told.outcomes.get('outcome_unknown') ?? 0 };
  } finally {
    await pair.close();
  }
}
