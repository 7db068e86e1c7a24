import type Database from 'better-sqlite3';
import { HoldfastError } from '../../core/index.js';

/** The write-ahead log since it was last begun anew, and how much of it is copied back into the file. */
export interface WalState {
  readonly frames: number;
  readonly copied: number;
}

/** `NOOP` only looks; `PASSIVE` copies what no reader needs where it is, and waits for nobody. */
export function checkpoint(db: Database.Database, mode: 'NOOP' | 'PASSIVE'): WalState {
  const { log, checkpointed } = pragma(db, mode);
  return { frames: log, copied: checkpointed };
}

/**
 * Copies the whole log into the file, syncs it and empties the log: what can be read afterwards was written and synced after this
 * began, whatever an earlier fsync said or lost.
 * @throws busy while another connection reads or writes
 */
export function copyBack(db: Database.Database): void {
  if (pragma(db, 'TRUNCATE').busy !== 0) throw new HoldfastError('busy');
}

function pragma(db: Database.Database, mode: string) {
  const [row] = db.pragma(`wal_checkpoint(${mode})`) as { busy: number; log: number; checkpointed: number }[];
  return row ?? { busy: 1, log: 0, checkpointed: 0 };
}
