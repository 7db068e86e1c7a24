import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { LedgerStore } from '../../src/ledger/index.js';
import { createMemoryLedger, MemoryDisk, openSqliteLedger } from '../../src/storage/index.js';
import type { TestClock } from '../storage/suite/fixtures.js';

/** A ledger, and what it stands on. */
export interface Disk {
  readonly ledger: LedgerStore;
  /** Copies all that is on it now. What it answers puts the copy back, as often as it is called; the clock goes on. */
  keep(): Promise<() => Promise<Disk>>;
}
export type OpenDisk = (clock: TestClock) => Promise<Disk>;

export const inMemory: OpenDisk = async (clock) => {
  const open = (disk: MemoryDisk): Disk => ({
    ledger: createMemoryLedger({ clock, disk }),
    async keep() {
      const copy = disk.copy();
      return async () => open(copy.copy());
    },
  });
  return open(new MemoryDisk());
};

/** Files in this folder; `opened` gets every ledger, to be closed at the end. */
export function onFiles(folder: string, opened: LedgerStore[]): OpenDisk {
  let files = 0;
  const next = () => join(folder, `${files++}.db`);
  const copy = (from: string): string => {
    const to = next();
    // Nobody writes meanwhile, so that file and log belong together.
    for (const part of ['', '-wal']) if (existsSync(from + part)) copyFileSync(from + part, to + part);
    return to;
  };
  return async (clock) => {
    const open = async (file: string): Promise<Disk> => {
      const ledger = await openSqliteLedger({ file, clock });
      opened.push(ledger);
      return {
        ledger,
        async keep() {
          const kept = copy(file);
          return () => open(copy(kept));
        },
      };
    };
    return open(next());
  };
}
