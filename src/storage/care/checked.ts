import { existsSync } from 'node:fs';
import type { LedgerStore } from '../../ledger/index.js';
import { type LedgerOptions, openDatabase, openLedger } from '../open.js';
import { isPostgresUrl, type LedgerTarget } from '../target.js';
import { assertSafe, type Inspection } from './inspection.js';

export type Durability = 'standard' | 'strict';

/**
 * Opens a ledger and says how its database keeps what is committed; before anything is written there, where it exists already.
 * @throws ledger_unsafe under `strict` where it can lose it; config_invalid, schema_newer, ledger_unavailable, busy
 */
export async function openCheckedLedger(
  target: LedgerTarget,
  durability: Durability,
  options: LedgerOptions = {},
): Promise<{ ledger: LedgerStore; inspection: Inspection }> {
  if (isPostgresUrl(target) || existsSync(target)) {
    const inspection = await inspect(target, durability, options);
    return { inspection, ledger: await openLedger(target, options) };
  }
  const ledger = await openLedger(target, options);
  try {
    return { ledger, inspection: await inspect(target, durability, options) };
  } catch (error) {
    await ledger.close();
    throw error;
  }
}

async function inspect(
  target: LedgerTarget,
  durability: Durability,
  options: LedgerOptions,
): Promise<Inspection> {
  const database = await openDatabase(target, options);
  try {
    const inspection = await database.inspect();
    if (durability === 'strict') assertSafe(inspection);
    return inspection;
  } finally {
    await database.close();
  }
}
