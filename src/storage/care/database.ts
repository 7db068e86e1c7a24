import type { CaseRef } from '../../core/index.js';
import type { Finding, Inspection } from './inspection.js';
import type { LedgerTable } from './tables.js';

export type Value = string | number | null;
/** The values of one row, in the order of the columns. */
export type Row = readonly Value[];

/**
 * The database below a ledger, for whoever keeps or examines it. No rule is asked here, so no agent writes through it. Nothing is made
 * or migrated by opening one.
 */
export interface LedgerDatabase {
  readonly engine: 'sqlite' | 'postgres';
  /** The schema's version, 0 where there is no ledger yet, and the newest that this version of Holdfast knows. */
  schema(): Promise<{ readonly found: number; readonly known: number }>;
  incarnation(): Promise<string>;
  /** Rows of a table that meet the condition. */
  count(table: string, where?: string): Promise<number>;
  /** Cases with a row or an audit behind `last`, in order. */
  casesAfter(last: CaseRef | null, limit: number): Promise<CaseRef[]>;
  /** Everything that `work` reads is of one moment. */
  frozen<T>(work: () => Promise<T>): Promise<T>;
  /** All rows, in batches, in the order in which they were made. */
  rows(table: LedgerTable): AsyncIterable<readonly Row[]>;
  /** Adds rows to a ledger that holds none and gives it this incarnation, all or nothing. @throws already_exists */
  fill<T>(
    incarnation: string,
    work: (
      add: (table: string, columns: readonly string[], rows: readonly Row[]) => Promise<void>,
    ) => Promise<T>,
  ): Promise<T>;
  /** Whether a commit stays, by the settings. */
  inspect(): Promise<Inspection>;
  /** Damage that the database itself can find. */
  check(): Promise<Finding[]>;
  close(): Promise<void>;
}
