import type Database from 'better-sqlite3';
import { type Clock, HoldfastError, toUtc } from '../../core/index.js';
import { faultPoint } from '../../faults/index.js';
import {
  type CommandOf,
  type Judge,
  judge,
  type ResultOf,
  type RuleName,
  type Ruling,
} from '../../ledger/index.js';
import {
  answer,
  type ChangeHandlers,
  carryOut,
  type Engine,
  type LedgerQueries,
  type LedgerReads,
  type ReadName,
  readsOf,
} from '../engine.js';
import { auditTable } from './audit.js';
import { caseTable } from './cases.js';
import { claimTable } from './claims.js';
import { guardPlace } from './connection.js';
import { decisionTable } from './decisions.js';
import { effectTable } from './effects.js';
import { isFatal, toHoldfastError } from './errors.js';
import { kindTable } from './kinds.js';
import { whileBusy } from './lock.js';
import { noteTable } from './notes.js';
import { offerTable } from './offers.js';
import { Prepared } from './prepared.js';
import { quarantineTable } from './quarantines.js';
import { taskTable } from './tasks.js';
import { workTable } from './work.js';

type Tables = ReturnType<typeof tablesOf>;

/**
 * Runs rules on one connection. Writers of this process wait for each other in a queue, so that only one at a time competes with
 * other processes for the lock; a transaction, once it has the lock, runs to its commit without yielding.
 */
export function sqliteEngine(
  db: Database.Database,
  clock: Clock,
  lockWaitMs: number,
  rule: Judge = judge,
): Engine {
  const tables = tablesOf(db);
  const handlers = handlersOf(tables);
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  const assertInPlace = guardPlace(db);
  let broken = false;
  let queue: Promise<unknown> = Promise.resolve();

  const transaction = <N extends RuleName>(name: N, command: CommandOf<N>): Ruling<ResultOf<N>> => {
    begin.run();
    try {
      faultPoint('L1.begun');
      const view = queriesOf(tables, clock.now());
      const ruling = rule(view, name, command);
      for (const change of ruling.changes) {
        carryOut(handlers, change);
        faultPoint('L2.changed');
      }
      if (ruling.audit !== null) tables.audit.append(ruling.audit, toUtc(view.now));
      faultPoint('L3.audited');
      faultPoint('L4.committing');
      commit.run();
      faultPoint('L5.committed');
      return ruling;
    } catch (error) {
      // A full disk or a trigger may have ended the transaction already.
      if (db.inTransaction) rollback.run();
      throw error;
    }
  };

  const snapshot = db.transaction((query: (reads: LedgerReads) => unknown) =>
    query(readsOf(queriesOf(tables, clock.now()))),
  );

  const guarded = async <T>(attempt: () => T, deadline: number): Promise<T> => {
    if (broken || !db.open) throw new HoldfastError('ledger_unavailable');
    try {
      return await whileBusy(() => {
        assertInPlace();
        return attempt();
      }, deadline);
    } catch (error) {
      if (isFatal(error)) broken = true;
      throw toHoldfastError(error);
    }
  };

  return {
    async write<N extends RuleName>(name: N, command: CommandOf<N>): Promise<ResultOf<N>> {
      const deadline = performance.now() + lockWaitMs;
      const turn = queue.then(() => guarded(() => transaction(name, command), deadline));
      queue = turn.catch(() => undefined);
      const ruling = await turn;
      if ('refusal' in ruling) throw ruling.refusal;
      return ruling.result;
    },
    read: async <Q extends ReadName>(name: Q, ...args: Parameters<LedgerReads[Q]>) =>
      guarded(
        () => snapshot.deferred((reads) => answer(reads, name, args)) as ReturnType<LedgerReads[Q]>,
        performance.now() + lockWaitMs,
      ),
    async close(): Promise<void> {
      await queue;
      db.close();
    },
  };
}

function tablesOf(db: Database.Database) {
  const prepared = new Prepared(db);
  const incarnation = db.prepare<[], string>("SELECT value FROM meta WHERE name = 'incarnation'").pluck();
  return {
    incarnation: (): string => incarnation.get() ?? '',
    kinds: kindTable(db),
    cases: caseTable(db, prepared),
    offers: offerTable(db, prepared),
    decisions: decisionTable(db),
    work: workTable(db, prepared),
    notes: noteTable(db),
    effects: effectTable(db),
    tasks: taskTable(db, prepared),
    audit: auditTable(db),
    claims: claimTable(db),
    quarantines: quarantineTable(db),
  };
}

function queriesOf(tables: Tables, now: Date): LedgerQueries {
  const { kinds, cases, offers, decisions, work, notes, effects, tasks, audit, claims, quarantines } = tables;
  const at = toUtc(now);
  return {
    now,
    incarnation: tables.incarnation,
    kind: kinds.get,
    kinds: kinds.list,
    case: cases.get,
    cases: cases.list,
    casesById: cases.byId,
    offer: offers.get,
    openOffer: offers.open,
    offers: offers.list,
    offersOf: offers.ofCase,
    decision: decisions.get,
    decisionsOf: decisions.ofCase,
    lastAttempt: (key) => Math.max(offers.lastAttempt(key), decisions.lastAttempt(key)),
    work: work.get,
    openWork: work.open,
    workItems: work.list,
    workOf: work.ofCase,
    notes: notes.list,
    effects: effects.list,
    task: tasks.get,
    tasks: tasks.list,
    nextSeq: audit.nextSeq,
    audit: audit.list,
    auditedCases: audit.cases,
    auditHead: audit.head,
    auditHash: audit.hash,
    alive: (holder) => claims.alive(holder, at),
    freeOffers: (claim) => offers.free(claim, at),
    freeWork: (claim) => work.free(claim, at),
    quarantined: quarantines.has,
    quarantines: quarantines.list,
    unknownEffects: (tenant, limit) => effects.unknown(tenant, now, limit),
  };
}

function handlersOf(tables: Tables): ChangeHandlers {
  const { kinds, cases, offers, decisions, work, notes, effects, tasks, claims, quarantines } = tables;
  return {
    put_kind: ({ tenant, kind }) => kinds.put(tenant, kind),
    open_case: ({ row }) => cases.open(row),
    move_case: ({ guard, to }) => cases.move(guard, to),
    close_case: ({ guard, closedAt }) => cases.close(guard, closedAt),
    add_offer: ({ guard, row }) => offers.add(guard, row),
    set_offer: ({ from, row }) => offers.set(from, row),
    add_decision: ({ row }) => decisions.add(row),
    add_work: ({ guard, row }) => work.add(guard, row),
    supersede_work: ({ row }) => work.supersede(row),
    settle_work: ({ guard, row }) => work.settle(guard, row),
    add_note: ({ guard, row }) => notes.add(guard, row),
    start_effect: ({ guard, again, row }) => effects.start(guard, again, row),
    settle_effect: ({ guard, row }) => effects.settle(guard, row),
    add_task: ({ row }) => tasks.add(row),
    save_task: ({ row }) => tasks.save(row),
    keep_lease: (change) => claims.keep(change),
    end_lease: ({ holder }) => claims.end(holder),
    claim: ({ row }) => claims.claim(row),
    unclaim: ({ row }) => claims.unclaim(row),
    quarantine: ({ row }) => quarantines.add(row),
  };
}
