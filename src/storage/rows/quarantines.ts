import type { Quarantine } from '../../ledger/index.js';
import { ofRef, type RefColumns, toRef } from './keys.js';

export interface QuarantineColumns extends RefColumns {
  reason: Quarantine['reason'];
  witnessed: string;
  found: string;
  at: string;
}

export const QUARANTINE_COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'reason',
  'witnessed',
  'found',
  'at',
] as const satisfies readonly (keyof QuarantineColumns)[];

export const toQuarantine = (row: QuarantineColumns): Quarantine => ({
  ref: toRef(row),
  reason: row.reason,
  witnessed: JSON.parse(row.witnessed),
  found: JSON.parse(row.found),
  at: row.at,
});

export const ofQuarantine = (row: Quarantine): QuarantineColumns => ({
  ...ofRef(row.ref),
  reason: row.reason,
  witnessed: JSON.stringify(row.witnessed),
  found: JSON.stringify(row.found),
  at: row.at,
});
