import { setTimeout } from 'node:timers/promises';
import type Database from 'better-sqlite3';
import { HoldfastError } from '../../core/index.js';
import type { Judge } from '../../ledger/index.js';
import { assertInPlace, connect, type Place, placeOf } from './connection.js';
import { whileBusy } from './lock.js';
import { tablesOf } from './tables.js';
import { type ReadState, type RunBatch, readingOn, transactionsOn } from './transaction.js';
import { copyBack } from './wal.js';

/** Attempts to open a file again are at least this far apart, milliseconds. */
const REOPEN_EVERY_MS = 250;

/** One connection, with what is prepared on it. */
export interface Session {
  readonly db: Database.Database;
  readonly read: ReadState;
  readonly run: RunBatch;
}

/**
 * The main thread's connection.
 *   open       -> distrusted   something was answered after which its cache may hold what the disk does not
 *   distrusted -> open         by the next request that needs it, if the file can be opened and all of its log written anew
 *   any        -> closed       for good
 */
export class LedgerFile {
  readonly place: Place;
  readonly #judge: Judge;
  readonly #lockWaitMs: number;
  #session: Session | null;
  #opening: Promise<Session> | null = null;
  #notBefore = 0;
  #closed = false;

  constructor(db: Database.Database, judge: Judge, lockWaitMs: number) {
    this.place = placeOf(db.name);
    this.#judge = judge;
    this.#lockWaitMs = lockWaitMs;
    this.#session = this.#prepare(db);
  }

  /** Sees to it that there is a connection. @throws ledger_unavailable, busy */
  async ready(): Promise<void> {
    if (this.#closed) throw new HoldfastError('ledger_unavailable');
    if (this.#session !== null) return;
    this.#opening ??= this.#reopen().finally(() => {
      this.#opening = null;
    });
    await this.#opening;
  }

  /** The connection, at this moment, to the file that was opened at first. @throws ledger_unavailable */
  use(): Session {
    if (this.#session === null) throw new HoldfastError('ledger_unavailable');
    assertInPlace(this.place);
    return this.#session;
  }

  distrust(): void {
    this.#session?.db.close();
    this.#session = null;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#opening?.catch(() => undefined);
    this.distrust();
  }

  async #reopen(): Promise<Session> {
    await setTimeout(Math.max(0, this.#notBefore - performance.now()));
    this.#notBefore = performance.now() + REOPEN_EVERY_MS;
    const deadline = performance.now() + this.#lockWaitMs;
    assertInPlace(this.place);
    const db = await connect(this.place.file, deadline);
    try {
      await whileBusy(() => copyBack(db), deadline);
      this.#session = this.#prepare(db);
      return this.#session;
    } catch (error) {
      db.close();
      throw error;
    }
  }

  #prepare(db: Database.Database): Session {
    const tables = tablesOf(db);
    return { db, read: readingOn(db, tables), run: transactionsOn(db, tables, this.#judge) };
  }
}
