import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';

/** A database for one ledger, as the crash tests need it. */
export interface CrashDatabase {
  readonly name: string;
  /** What a configuration says under `ledger`. */
  readonly ledger: string;
  open(): Promise<LedgerStore>;
  close(): Promise<void>;
}

export async function sqliteDatabase(): Promise<CrashDatabase> {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-crash-sqlite-'));
  const file = join(dir, 'ledger.db');
  return {
    name: 'SQLite',
    ledger: file,
    open: () => openSqliteLedger({ file }),
    close: () => rm(dir, { recursive: true, force: true }),
  };
}
