import type Database from 'better-sqlite3';
import { toUtc } from '../../core/index.js';
import type { ChangeHandlers, LedgerQueries } from '../engine.js';
import { auditTable } from './audit.js';
import { candidateTable } from './candidates.js';
import { caseTable } from './cases.js';
import { claimTable } from './claims.js';
import { decisionTable } from './decisions.js';
import { effectTable } from './effects.js';
import { incarnationTable } from './incarnations.js';
import { kindTable } from './kinds.js';
import { noteTable } from './notes.js';
import { offerTable } from './offers.js';
import { pendingTable } from './pending.js';
import { Prepared } from './prepared.js';
import { pushTable } from './push.js';
import { quarantineTable } from './quarantines.js';
import { taskTable } from './tasks.js';
import { transferTable } from './transfers.js';
import { watchTable } from './watch.js';
import { workTable } from './work.js';

/** Every table of one connection, with its statements prepared. */
export type Tables = ReturnType<typeof tablesOf>;

export function tablesOf(db: Database.Database) {
  const prepared = new Prepared(db);
  const incarnation = db.prepare<[], string>("SELECT value FROM meta WHERE name = 'incarnation'").pluck();
  return {
    incarnation: (): string => incarnation.get() ?? '',
    kinds: kindTable(db),
    cases: caseTable(db, prepared),
    offers: offerTable(db, prepared),
    decisions: decisionTable(db),
    pending: pendingTable(db, prepared),
    work: workTable(db, prepared),
    notes: noteTable(db),
    effects: effectTable(db),
    transfers: transferTable(db),
    tasks: taskTable(db, prepared),
    audit: auditTable(db),
    claims: claimTable(db),
    pushes: pushTable(db, prepared),
    watches: watchTable(db),
    candidates: candidateTable(db),
    quarantines: quarantineTable(db),
    incarnations: incarnationTable(db),
  };
}

/** What one connection answers; whoever begins a transaction sets `now` for it. */
export type View = Omit<LedgerQueries, 'now'> & { now: Date };

export function viewOf(tables: Tables): View {
  const { kinds, cases, offers, decisions, work, notes, effects, tasks, audit, claims, quarantines } = tables;
  const { transfers, pending } = tables;
  const { pushes, watches, candidates, incarnations } = tables;
  const view: View = {
    now: new Date(0),
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
    decisionsBy: decisions.by,
    pending: pending.get,
    pendingOf: pending.ofTask,
    pendings: pending.list,
    pendingOfCase: pending.ofCase,
    lastAttempt: (key) => Math.max(offers.lastAttempt(key), decisions.lastAttempt(key)),
    work: work.get,
    openWork: work.open,
    workItems: work.list,
    workOf: work.ofCase,
    notes: notes.list,
    effects: effects.list,
    transfers: transfers.list,
    task: tasks.get,
    tasks: tasks.list,
    nextSeq: audit.nextSeq,
    audit: audit.list,
    auditedCases: audit.cases,
    auditHead: audit.head,
    auditHash: audit.hash,
    alive: (holder) => claims.alive(holder, toUtc(view.now)),
    freeOffers: (claim) => offers.free(claim, toUtc(view.now)),
    freeWork: (claim) => work.free(claim, toUtc(view.now)),
    awaitedDecisions: (tenant, limit) => pending.awaited(tenant, view.now, limit),
    freePending: (claim) => pending.free(claim, toUtc(view.now)),
    pushes: pushes.ofTask,
    push: pushes.get,
    waiting: pushes.waiting,
    duePushes: (claim) => pushes.due(claim, toUtc(view.now)),
    dead: pushes.dead,
    notifications: pushes.list,
    notification: pushes.one,
    notificationCounts: pushes.counts,
    watch: (watchId) => watches.get(watchId, toUtc(view.now)),
    heard: watches.heard,
    plan: candidates.plan,
    plans: candidates.plans,
    sentTask: candidates.task,
    sentTasksOf: candidates.tasksOf,
    sentTasksBy: candidates.tasksBy,
    openQuestions: candidates.asked,
    exhaustedPlans: candidates.exhausted,
    quarantined: quarantines.has,
    quarantines: quarantines.list,
    incarnationOf: incarnations.of,
    awaited: incarnations.awaited,
    leasesOf: (agent) => incarnations.leases(agent, toUtc(view.now)),
    heardFrom: incarnations.heard,
    unansweredSince: incarnations.unanswered,
    receipts: incarnations.receipts,
    doubtfulOffers: offers.doubtful,
    unknownEffects: (tenant, limit) => effects.unknown(tenant, view.now, limit),
  };
  return view;
}

export function handlersOf(tables: Tables): ChangeHandlers {
  const { kinds, cases, offers, decisions, work, notes, effects, tasks, claims, quarantines } = tables;
  const { transfers, pending } = tables;
  const { pushes, watches, candidates, incarnations } = tables;
  return {
    put_kind: ({ tenant, kind }) => kinds.put(tenant, kind),
    open_case: ({ row }) => cases.open(row),
    move_case: ({ guard, to }) => cases.move(guard, to),
    leap_case({ guard, to, transfer }) {
      transfers.add(transfer);
      cases.leap(guard, to);
    },
    close_case: ({ guard, closedAt }) => cases.close(guard, closedAt),
    add_offer: ({ guard, row }) => offers.add(guard, row),
    set_offer: ({ from, row }) => offers.set(from, row),
    add_decision: ({ row }) => decisions.add(row),
    add_transfer: ({ row }) => transfers.add(row),
    add_work: ({ guard, row }) => work.add(guard, row),
    supersede_work: ({ row }) => work.supersede(row),
    settle_work: ({ guard, row }) => work.settle(guard, row),
    add_note: ({ guard, row }) => notes.add(guard, row),
    start_effect: ({ guard, again, row }) => effects.start(guard, again, row),
    settle_effect: ({ guard, row }) => effects.settle(guard, row),
    add_task: ({ row }) => tasks.add(row),
    save_task: ({ row }) => tasks.save(row),
    save_offer_task: ({ row }) => tasks.saveOffer(row),
    add_pending: ({ row }) => pending.add(row),
    set_pending: ({ row }) => pending.set(row),
    keep_lease: (change) => claims.keep(change),
    end_lease: ({ holder }) => claims.end(holder),
    claim: ({ row }) => claims.claim(row),
    unclaim: ({ row }) => claims.unclaim(row),
    quarantine: ({ row }) => quarantines.add(row),
    add_push: ({ row }) => pushes.add(row),
    set_push: ({ row }) => pushes.set(row),
    remove_push: ({ tenant, pushId }) => pushes.remove(tenant, pushId),
    notify: (change) => pushes.notify(change),
    set_notification: ({ row }) => pushes.setOne(row),
    remove_notification: ({ tenant, pushId, seq }) => pushes.removeOne(tenant, pushId, seq),
    bury_notifications: (change) => pushes.bury(change),
    add_watch: ({ row }) => watches.add(row),
    remove_watch: ({ tenant, watchId }) => watches.remove(tenant, watchId),
    prune_watches: ({ tenant, agent, now }) => watches.prune(tenant, agent, now),
    hear: (change) => watches.hear(change),
    set_plan: ({ row }) => candidates.setPlan(row),
    set_sent_task: ({ row }) => candidates.setTask(row),
    set_incarnation: ({ row }) => incarnations.set(row),
    drop_awaited: ({ agent }) => incarnations.dropAwaited(agent),
    set_awaited: ({ row }) => incarnations.setAwaited(row),
    set_heard: ({ row }) => incarnations.setHeard(row),
    // What the rule has read is what is there: the transaction has the lock on the file.
    check_heard: () => undefined,
    lift_quarantine: ({ ref, from, epoch }) => {
      if (from !== null && from !== epoch) cases.raise(ref, from, epoch);
      quarantines.lift(ref);
    },
  };
}
