import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createTestDatabase } from '../postgres/database.js';

/** Where the organisations of a test keep their ledgers. */
export const ENGINES = ['sqlite', 'postgres'] as const;
export type EngineName = (typeof ENGINES)[number];

/** All that one organisation has on its disks, and a copy of that. Whatever copies or puts back does so while nobody uses it. */
export interface Disks {
  /** The folder of its agent. */
  readonly dir: string;
  /** As `ledger` in its configuration. */
  readonly ledger: string;
  keep(): Promise<void>;
  putBack(): Promise<void>;
  /** The ledger alone: what its agent has seen committed stays as it is, and is newer then. */
  putBackLedger(): Promise<void>;
  /** An empty ledger in the place of the one that is there. */
  loseLedger(): Promise<void>;
  remove(): Promise<void>;
}

export async function disksOf(engine: EngineName, dir: string): Promise<Disks> {
  const kept = `${dir}.kept`;
  const copy = (from: string, to: string) => {
    rmSync(to, { recursive: true, force: true });
    cpSync(from, to, { recursive: true });
  };
  if (engine === 'sqlite') {
    const files = ['ledger.db', 'ledger.db-wal', 'ledger.db-shm'];
    const loseLedger = async () => {
      for (const name of files) rmSync(join(dir, name), { force: true });
    };
    return {
      dir,
      ledger: 'ledger.db',
      keep: async () => copy(dir, kept),
      putBack: async () => copy(kept, dir),
      async putBackLedger() {
        await loseLedger();
        cpSync(kept, dir, {
          recursive: true,
          filter: (from) => from === kept || files.some((name) => from === join(kept, name)),
        });
      },
      loseLedger,
      async remove() {},
    };
  }
  const database = await createTestDatabase();
  return {
    dir,
    ledger: database.url,
    async keep() {
      copy(dir, kept);
      await database.keep();
    },
    async putBack() {
      copy(kept, dir);
      await database.putBack();
    },
    putBackLedger: () => database.putBack(),
    loseLedger: () => database.replace(),
    remove: () => database.drop(),
  };
}
