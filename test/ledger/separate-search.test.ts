import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import { seeded } from '../seeded.js';
import type { TestClock } from '../storage/suite/fixtures.js';
import { MISTAKES, type Mistake, SeparateWorld } from './separate-world.js';

const STEPS = 120;

/** One history; `null` where all that must hold did, else what did not. */
async function play(
  seed: number,
  mistake: Mistake | null,
  seen: Set<string>,
  open?: Parameters<typeof SeparateWorld.open>[2],
): Promise<string | null> {
  const world = await SeparateWorld.open(seeded(seed), mistake, open);
  try {
    for (let step = 0; step < STEPS; step += 1) await world.step();
    await world.calm();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    for (const what of world.seen) seen.add(what);
  }
}

describe('three ledgers and a network that cannot be relied on', () => {
  it('[R-165][R-166] never have two that act, an epoch issued twice or an acceptance lost', async () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 60; seed += 1) expect(await play(seed, null, seen), `seed ${seed}`).toBeNull();
    // A search that never gets there shows nothing.
    const reached = [
      'accepted',
      'rejected',
      'withdrawn',
      'expired',
      'in_doubt',
      'effects_frozen',
      'offer_expired',
    ];
    for (const what of [...reached, 'offer_open', 'effect_duplicate', 'withdraw_needed', 'by a person'])
      expect(seen).toContain(what);
  }, 120_000);

  it('[R-166] say the same on SQLite', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
    const ledgers: LedgerStore[] = [];
    const open = async (clock: TestClock) => {
      const ledger = await openSqliteLedger({ file: join(folder, `${ledgers.length}.db`), clock });
      ledgers.push(ledger);
      return ledger;
    };
    try {
      const [stored, modelled] = [new Set<string>(), new Set<string>()];
      for (const seed of [1, 2]) {
        expect(await play(seed, null, stored, open), `seed ${seed}`).toBeNull();
        expect(await play(seed, null, modelled)).toBeNull();
      }
      expect(stored).toEqual(modelled);
    } finally {
      for (const ledger of ledgers) await ledger.close();
      rmSync(folder, { recursive: true });
    }
  }, 60_000);

  it.each(MISTAKES)(
    '[R-089][R-166] find it out where a node %s',
    async (mistake) => {
      const found: string[] = [];
      for (let seed = 1; seed <= 200 && found.length === 0; seed += 1) {
        const problem = await play(seed, mistake, new Set());
        if (problem !== null) found.push(problem);
      }
      expect(found[0]).toMatch(/^(H[1-7]: |\d can act)/);
    },
    60_000,
  );
});
