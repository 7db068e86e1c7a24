import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import type { LedgerStore } from '../../src/ledger/index.js';
import { createMemoryLedger, openPostgresLedger, openSqliteLedger } from '../../src/storage/index.js';
import { createLedgerDatabase, type LedgerDatabase } from '../postgres/ledger.js';
import { ledgerSuite } from './suite.js';

const folders: string[] = [];
const ledgers: LedgerStore[] = [];

afterEach(async () => {
  await Promise.all(ledgers.splice(0).map((ledger) => ledger.close()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
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
  let database: LedgerDatabase;
  beforeAll(async () => {
    database = await createLedgerDatabase();
  });
  afterAll(() => database.drop());

  ledgerSuite(async (clock) => {
    await database.empty();
    const ledger = await openPostgresLedger({ url: database.url, clock });
    ledgers.push(ledger);
    return ledger;
  });
});
