import { existsSync } from 'node:fs';
import { type LedgerOptions, openDatabase, openLedger } from '../open.js';
import { isPostgresUrl, type LedgerTarget, redactUrl } from '../target.js';

export interface Migrated {
  /** Without a password. */
  readonly target: string;
  /** 0 where there was no ledger. */
  readonly from: number;
  readonly to: number;
}

/** Makes a ledger's schema, or brings it to what this version knows. @throws schema_newer, config_invalid, ledger_unavailable, busy */
export async function migrateLedger(target: LedgerTarget, options: LedgerOptions = {}): Promise<Migrated> {
  const from = isPostgresUrl(target) || existsSync(target) ? await versionOf(target, options) : 0;
  await (await openLedger(target, options)).close();
  return { target: redactUrl(target), from, to: await versionOf(target, options) };
}

async function versionOf(target: LedgerTarget, options: LedgerOptions): Promise<number> {
  const database = await openDatabase(target, options);
  try {
    return (await database.schema()).found;
  } finally {
    await database.close();
  }
}
