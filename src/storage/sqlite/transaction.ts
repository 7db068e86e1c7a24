import type Database from 'better-sqlite3';
import type { ChainHead } from '../../audit/index.js';
import { type AcceptanceKey, type CaseRef, canonical, type HoldfastError, toUtc } from '../../core/index.js';
import { faultPoint } from '../../faults/index.js';
import type { Change, CommandOf, Judge, ResultOf, RuleName, Ruling } from '../../ledger/index.js';
import { carryOut, type LedgerReads, readsOf } from '../engine.js';
import { isCutShort, isFatal, toHoldfastError } from './errors.js';
import { handlersOf, type Tables, type View, viewOf } from './tables.js';

export interface Request<N extends RuleName = RuleName> {
  readonly name: N;
  readonly command: CommandOf<N>;
}

/** What one command came to, if its transaction commits. A refusal is an error, too, but its audit entry commits. */
export type Outcome = { readonly result: ResultOf<RuleName> } | { readonly error: HoldfastError };

/** What stands in the ledger if the transaction committed, and cannot otherwise: it tells what became of a lost answer. */
export type Witness = { readonly ref: CaseRef; readonly head: ChainHead } | { readonly change: Change };

export interface Judged {
  readonly outcomes: readonly Outcome[];
  /** `null`: nothing was changed, so nothing can be lost. */
  readonly witness: Witness | null;
}

/** How a transaction ended. */
export type End =
  | { readonly end: 'committed'; readonly judged: Judged }
  /** Nothing of it is in the ledger, or ever will be, for every command in it. After a `fatal` error the connection is not to be trusted. */
  | { readonly end: 'undone'; readonly error: HoldfastError; readonly fatal: boolean }
  | { readonly end: 'unknown'; readonly error: HoldfastError; readonly judged: Judged };

/**
 * Runs commands as one transaction. `onJudged` is called before the commit: should the rest never be heard of, it says what to look
 * for. Throws only where the transaction did not begin.
 */
export type RunBatch = (
  batch: readonly Request[],
  now: () => Date,
  onJudged?: (judged: Judged) => void,
) => End;

/** Answers questions from one consistent state. */
export type ReadState = <T>(now: Date, question: (reads: LedgerReads) => T) => T;

export function readingOn(db: Database.Database, tables: Tables): ReadState {
  const begin = db.prepare('BEGIN');
  const end = db.prepare('COMMIT');
  const view = viewOf(tables);
  const reads = readsOf(view);
  return (now, question) => {
    begin.run();
    try {
      view.now = now;
      return question(reads);
    } finally {
      // Some errors end the transaction by themselves.
      if (db.inTransaction) end.run();
    }
  };
}

/** On one connection. Each of several commands has a savepoint: one that fails leaves nothing, and harms no other. */
export function transactionsOn(db: Database.Database, tables: Tables, judge: Judge): RunBatch {
  const handlers = handlersOf(tables);
  const view = viewOf(tables);
  const remembered = [remember(view, 'offer'), remember(view, 'decision')];
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  const save = db.prepare('SAVEPOINT command');
  const release = db.prepare('RELEASE command');
  const rollbackTo = db.prepare('ROLLBACK TO command');
  let witness: Witness | null = null;

  const write = (ruling: Ruling<unknown>, at: string): void => {
    const [change] = ruling.changes;
    for (const each of ruling.changes) {
      carryOut(handlers, each);
      faultPoint('L2.changed');
    }
    const head = ruling.audit === null ? null : tables.audit.append(ruling.audit, at);
    faultPoint('L3.audited');
    if (ruling.audit !== null && head !== null) witness = { ref: ruling.audit.ref, head };
    else if (change !== undefined) witness ??= { change };
  };

  const inSavepoint = (ruling: Ruling<unknown>, at: string): void => {
    if (ruling.changes.length === 0 && ruling.audit === null) return;
    save.run();
    try {
      write(ruling, at);
    } catch (error) {
      // A full disk or a trigger may have ended the transaction, and the commands before this one with it.
      if (db.inTransaction) rollbackTo.run();
      throw error;
    } finally {
      if (db.inTransaction) release.run();
    }
  };

  /** @throws what ended the transaction, or has to */
  const attempt = ({ name, command }: Request, alone: boolean): Outcome => {
    for (const { forget } of remembered) forget();
    try {
      const ruling = judge(view, name, command);
      (alone ? write : inSavepoint)(ruling, toUtc(view.now));
      return 'refusal' in ruling ? { error: ruling.refusal } : { result: ruling.result };
    } catch (error) {
      if (alone || !db.inTransaction || isFatal(error) || isCutShort(error)) throw error;
      return { error: toHoldfastError(error) };
    }
  };

  return (batch, now, onJudged = () => undefined) => {
    begin.run();
    witness = null;
    let judged: Judged;
    try {
      faultPoint('L1.begun');
      view.now = now();
      const outcomes = batch.map((request) => attempt(request, batch.length === 1));
      judged = { outcomes, witness };
      onJudged(judged);
      faultPoint('L4.committing');
    } catch (error) {
      if (db.inTransaction) rollback.run();
      return { end: 'undone', error: toHoldfastError(error), fatal: isFatal(error) };
    }
    try {
      commit.run();
      faultPoint('L5.committed');
      return { end: 'committed', judged };
    } catch (cause) {
      const error = toHoldfastError(cause);
      const open = db.inTransaction;
      if (open) rollback.run();
      return open || isCutShort(cause)
        ? { end: 'undone', error, fatal: isFatal(cause) }
        : { end: 'unknown', error, judged };
    }
  };
}

/** Asked again about the very same key while one command is judged, the view answers what it answered before. */
function remember<N extends 'offer' | 'decision'>(view: View, name: N): { forget(): void } {
  const ask = view[name] as (key: AcceptanceKey) => ReturnType<View[N]>;
  let last: { readonly key: AcceptanceKey; readonly found: ReturnType<View[N]> } | null = null;
  const answer = (key: AcceptanceKey) => {
    if (last?.key !== key) last = { key, found: ask(key) };
    return last.found;
  };
  Object.assign(view, { [name]: answer });
  return {
    forget() {
      last = null;
    },
  };
}

/** Whether what the witness tells of is in the ledger; `null` where that cannot be told from it. */
export function isWritten(ledger: LedgerReads, witness: Witness): boolean | null {
  if ('head' in witness) return ledger.auditHash(witness.ref, witness.head.seq) === witness.head.hash;
  const { change } = witness;
  switch (change.do) {
    case 'put_kind':
      return isSame(ledger.kind(change.tenant, change.kind.kind), change.kind);
    case 'add_task':
    case 'save_task':
      return isSame(ledger.task(change.row.tenant, change.row.id), change.row);
    default:
      return null;
  }
}

function isSame(found: unknown, wanted: unknown): boolean {
  return found !== null && canonical(found) === canonical(wanted);
}
