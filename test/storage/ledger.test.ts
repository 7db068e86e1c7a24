import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe } from 'vitest';
import type { LedgerStore } from '../../src/ledger/index.js';
import { createMemoryLedger, openPostgresLedger, openSqliteLedger } from '../../src/storage/index.js';
import { createTestDatabase, type TestDatabase } from '../postgres/database.js';
import { ledgerSuite } from './suite.js';

const folders: string[] = [];
const ledgers: LedgerStore[] = [];
const databases: TestDatabase[] = [];

afterEach(async () => {
  await Promise.all(ledgers.splice(0).map((ledger) => ledger.close()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  await Promise.all(databases.splice(0).map((database) => database.drop()));
});

describe('memory', () => {
  ledgerSuite(async (clock) => createMemoryLedger({ clock }));
});

describe('sqlite', () => {
  ledgerSuite(async (clock) => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
    folders.push(folder);
    const ledger = await openSqliteLedger({ file: join(folder, 'ledger.db'), clock });
    ledgers.push(ledger);
    return ledger;
  });
});

describe('postgres', () => {
  ledgerSuite(async (clock) => {
    const database = await createTestDatabase();
    databases.push(database);
    const ledger = await openPostgresLedger({ url: database.url, clock });
    ledgers.push(ledger);
    return ledger;
  });
});
