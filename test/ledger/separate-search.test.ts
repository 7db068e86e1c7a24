import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LedgerStore } from '../../src/ledger/index.js';
import { seeded } from '../seeded.js';
import { onFiles } from './disks.js';
import { MISTAKES } from './separate-net.js';
import { SeparateWorld, type WorldOptions } from './separate-world.js';

const STEPS = 120;
/** More for a long search: `HOLDFAST_SEARCH_SEEDS=2000`. */
const SEEDS = Number(process.env.HOLDFAST_SEARCH_SEEDS ?? 60);
const LIMIT_MS = Math.max(120_000, SEEDS * 2_000);

type Seen = Map<string, number>;

/** One history; `null` where all that must hold did, else what did not. */
async function play(seed: number, seen: Seen, options: WorldOptions): Promise<string | null> {
  const world = await SeparateWorld.open(seeded(seed), options);
  try {
    for (let step = 0; step < STEPS; step += 1) await world.step();
    await world.calm();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    for (const [what, times] of world.seen) seen.set(what, (seen.get(what) ?? 0) + times);
  }
}

/** All histories are sound, and so many of them together have come to each of these: a search that never gets there shows nothing. */
async function search(options: WorldOptions, reached: readonly string[]): Promise<void> {
  const seen: Seen = new Map();
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    expect(await play(seed, seen, options), `seed ${seed}`).toBeNull();
  }
  for (const what of reached) expect(seen.get(what) ?? 0, what).toBeGreaterThan(0);
}

describe('three ledgers and a network that cannot be relied on', () => {
  it(
    '[R-165][R-166] never have two that act, an epoch issued twice or an acceptance lost',
    () =>
      search({}, [
        ...['accepted', 'rejected', 'withdrawn', 'expired', 'in_doubt', 'effects_frozen', 'offer_expired'],
        ...['offer_open', 'effect_duplicate', 'withdraw_needed', 'by a person'],
      ]),
    LIMIT_MS,
  );

  it(
    '[R-166] nor where ledgers are put back to an earlier state, and ask their peers what they hold',
    () =>
      search({ restores: true }, [
        ...['restored', 'restored again before all have answered', 'peers_unanswered', 'another page'],
        ...['receipt known', 'receipt released', 'receipt learned', 'receipt quarantined', 'recovered'],
        ...['incarnation_superseded', 'effects_frozen', 'effect_duplicate', 'in_doubt', 'by a person'],
      ]),
    LIMIT_MS,
  );

  it('[R-166] say the same on SQLite', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
    const opened: LedgerStore[] = [];
    const openDisk = onFiles(folder, opened);
    try {
      const [stored, modelled]: [Seen, Seen] = [new Map(), new Map()];
      for (const [seed, restores] of [
        [1, false],
        [2, true],
        [3, true],
      ] as const) {
        expect(await play(seed, stored, { openDisk, restores }), `seed ${seed}`).toBeNull();
        expect(await play(seed, modelled, { restores })).toBeNull();
      }
      expect(stored).toEqual(modelled);
    } finally {
      for (const ledger of opened) await ledger.close();
      rmSync(folder, { recursive: true });
    }
  }, 60_000);

  it.each(MISTAKES)(
    '[R-089][R-166] find it out where a node %s',
    async (mistake) => {
      const restores = mistake.includes('put back');
      const found: string[] = [];
      for (let seed = 1; seed <= 200 && found.length === 0; seed += 1) {
        const problem = await play(seed, new Map(), { mistake, restores });
        if (problem !== null) found.push(problem);
      }
      expect(found[0]).toMatch(/^(H[1-7]: |\d can act)/);
    },
    60_000,
  );
});
