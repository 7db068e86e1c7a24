import { isDeepStrictEqual } from 'node:util';
import type { ChainHead } from '../../audit/index.js';
import { type AcceptanceKey, type CaseRef, HoldfastError, isSameCase } from '../../core/index.js';
import type {
  CandidatePlan,
  Change,
  KindDefinition,
  LedgerView,
  SentTask,
  StoredOffer,
} from '../../ledger/index.js';
import { carryOut, type LedgerQueries } from '../engine.js';
import { attemptKey, refKey } from '../memory/keys.js';
import { queriesOf } from '../memory/queries.js';
import { emptyState, handlersOf } from '../memory/state.js';
import { type CaseColumns, toCase } from '../rows/cases.js';
import { type DecisionColumns, toDecision } from '../rows/decisions.js';
import { type EffectColumns, toEffect } from '../rows/effects.js';
import { type OfferColumns, toOffer } from '../rows/offers.js';
import { type PendingColumns, toPending } from '../rows/pending.js';
import { toNotification, toPush } from '../rows/push.js';
import { type TaskColumns, toTask } from '../rows/tasks.js';
import { toWork, type WorkColumns } from '../rows/work.js';
import type { Parties } from './incarnations.js';
import type { PushRows } from './push.js';
import type { Scope } from './scope.js';

/** One row of `holdfast.slices`. */
export interface SliceColumns {
  n: number;
  clock: string;
  seq: number | null;
  hash: string | null;
  quarantined: boolean | null;
  offer_quarantined: boolean | null;
  decision_quarantined: boolean | null;
  other_quarantined: boolean | null;
  until: string | null;
  definition: string | null;
  revision: number | null;
  case: CaseColumns | null;
  open_offer: OfferColumns | null;
  open_work: WorkColumns[] | null;
  effects: EffectColumns[] | null;
  offer: OfferColumns | null;
  decision: DecisionColumns | null;
  last: number | null;
  item: WorkColumns | null;
  task: TaskColumns | null;
  pending: PendingColumns[] | null;
  pending_tasks: TaskColumns[] | null;
}

/** The command is about another case than its key told: what stands under the key is to be judged on that case's slice. */
export class Elsewhere extends Error {
  readonly ref: CaseRef;

  constructor(ref: CaseRef) {
    super('Another case stands behind the command.');
    this.ref = ref;
  }
}

/** Longer ago, the database's clock may have been set meanwhile, milliseconds. */
const GUESS_MS = 10_000;

/** Rules read none of them: a slice that is kept would only grow by them. */
const NOT_KEPT: ReadonlySet<Change['do']> = new Set([
  'add_note',
  'add_task',
  'add_transfer',
  'check_heard',
  'save_task',
  'put_kind',
  'set_plan',
  'set_sent_task',
]);

/** What is written with a task is there where the task is. */
const WITH_TASK: ReadonlySet<Change['do']> = new Set(['add_push', 'set_push', 'notify']);

const idOf = (key: AcceptanceKey) => JSON.stringify(attemptKey(key));

/**
 * What the rules may read of one case, as a small ledger in memory. Its `head` is the version of all of it: what was judged on a slice
 * may be written only while the case still has that head, so a slice that is no longer true does no harm.
 */
export class Slice {
  readonly ref: CaseRef | undefined;
  readonly kind: {
    readonly name: string;
    readonly mode: KindDefinition['mode'];
    readonly revision: number;
  } | null;
  head: ChainHead | null;
  readonly #state = emptyState();
  /** Attempts that were looked up, with the last one under their handoff id. */
  readonly #attempts = new Map<string, number>();
  readonly #items = new Set<string>();
  /** Cases of which it was looked up whether they are quarantined. */
  readonly #quarantined = new Map<string, boolean>();
  readonly #task: string | undefined;
  #holder: string | undefined;
  #clock = 0;
  #readAt = 0;

  constructor(scope: Scope, row: SliceColumns) {
    const { tables } = this.#state;
    this.ref = scope.ref;
    this.head = row.seq === null || row.hash === null ? null : { seq: row.seq, hash: row.hash };
    this.#task = scope.taskId;
    const kind: KindDefinition | null = row.definition === null ? null : JSON.parse(row.definition);
    this.kind =
      kind === null || row.revision === null
        ? null
        : { name: kind.kind, mode: kind.mode, revision: row.revision };
    if (kind !== null) tables.kinds.put({ tenant: scope.tenant, kind }, scope.tenant, kind.kind);
    if (row.case !== null && scope.ref !== undefined)
      tables.cases.put(toCase(row.case), ...refKey(scope.ref));
    for (const columns of row.effects ?? []) {
      const effect = toEffect(columns);
      tables.effects.put(effect, ...refKey(effect.ref), effect.key);
    }
    for (const columns of row.open_work ?? []) this.#putWork(columns);
    if (row.open_offer !== null) this.#putOffer(row.open_offer);
    if (row.task !== null) tables.tasks.put(toTask(row.task), row.task.tenant, row.task.id);
    this.add(scope, row);
  }

  /** Whether all that the scope names was looked up, and lately. */
  covers({ ref, key, workId, taskId, kind, holder }: Scope): boolean {
    return (
      (ref === undefined || (this.ref !== undefined && isSameCase(ref, this.ref))) &&
      (key === undefined || this.#attempts.has(idOf(key))) &&
      (workId === undefined || this.#items.has(workId)) &&
      taskId === this.#task &&
      (holder === undefined || holder === this.#holder) &&
      performance.now() - this.#readAt < GUESS_MS &&
      (kind === undefined || kind === this.kind?.name)
    );
  }

  /** Takes over the attempt and the item that another look at the same head found. */
  add(scope: Scope, row: SliceColumns): void {
    this.#clock = Date.parse(row.clock);
    this.#readAt = performance.now();
    this.#mark(scope.ref, row.quarantined);
    this.#mark(scope.other, row.other_quarantined);
    if (row.offer !== null) {
      const { ref } = this.#putOffer(row.offer);
      this.#mark(ref, row.offer_quarantined);
    }
    if (row.decision !== null) {
      const decision = toDecision(row.decision);
      const { key, caseId } = decision;
      this.#state.tables.decisions.put(decision, ...attemptKey(key));
      this.#mark({ tenant: key.tenant, root: key.root, caseId }, row.decision_quarantined);
    }
    this.addPending(row.pending ?? [], row.pending_tasks ?? []);
    if (scope.key !== undefined) this.#attempts.set(idOf(scope.key), row.last ?? 0);
    if (scope.holder !== undefined) this.#holder = scope.holder;
    if (scope.holder !== undefined && row.until !== null) {
      const { holder } = scope;
      this.#state.tables.holders.put({ holder, until: row.until }, holder);
    }
    if (row.item !== null) this.#putWork(row.item);
    if (scope.workId !== undefined) this.#items.add(scope.workId);
  }

  /** Makes the changes that were committed, and stands at the head that they made. */
  advance(changes: readonly Change[], head: ChainHead): void {
    const handlers = handlersOf(this.#state);
    this.#state.journal.begin();
    for (const change of changes) if (!NOT_KEPT.has(change.do)) carryOut(handlers, change);
    this.#state.journal.begin();
    this.head = head;
  }

  /** Whether these changes, which no case's chain tells of, are what is there. */
  holds(changes: readonly Change[]): boolean {
    const { kinds, tasks } = this.#state.tables;
    const telling = changes.filter((change) => !WITH_TASK.has(change.do));
    if (telling.length === 0) return false;
    return telling.every((change) => {
      if (change.do === 'put_kind') {
        return isDeepStrictEqual(kinds.get(change.tenant, change.kind.kind)?.kind, change.kind);
      }
      if (change.do !== 'add_task' && change.do !== 'save_task') return false;
      return isDeepStrictEqual(tasks.get(change.row.tenant, change.row.id), change.row);
    });
  }

  /** The database's clock by the time that has passed here since the slice was read. */
  clock(): Date {
    return new Date(Math.round(this.#clock + performance.now() - this.#readAt));
  }

  queries(now: Date): LedgerQueries {
    return queriesOf(this.#state, now);
  }

  view(now: Date, parties: Parties): LedgerView {
    const queries = this.queries(now);
    const here =
      <T>(ask: (ref: CaseRef) => T) =>
      (ref: CaseRef): T => {
        if (this.ref === undefined || !isSameCase(ref, this.ref)) throw new Elsewhere(ref);
        return ask(ref);
      };
    const known = (key: AcceptanceKey): AcceptanceKey => {
      if (!this.#attempts.has(idOf(key)))
        throw new HoldfastError('internal', 'The attempt was not looked up.');
      return key;
    };
    return {
      now,
      kind: queries.kind,
      case: here(queries.case),
      nextSeq: here(() => (this.head?.seq ?? 0) + 1),
      offer: (key) => queries.offer(known(key)),
      openOffer: here(queries.openOffer),
      decision: (key) => queries.decision(known(key)),
      lastAttempt: (key) => Math.max(this.#lastAttempt(key), queries.lastAttempt(key)),
      effects: here(queries.effects),
      openWork: here(queries.openWork),
      work: queries.work,
      task: queries.task,
      quarantined: (ref) => {
        const found = this.#quarantined.get(JSON.stringify(refKey(ref)));
        if (found === undefined) throw new Elsewhere(ref);
        return found;
      },
      plan: here(queries.plan),
      sentTask: (key) => queries.sentTask(known(key)),
      ...parties,
      alive: queries.alive,
      freeOffers: queries.freeOffers,
      freeWork: queries.freeWork,
      pending: queries.pending,
      freePending: queries.freePending,
      pushes: queries.pushes,
      push: queries.push,
      waiting: queries.waiting,
      duePushes: queries.duePushes,
      dead: queries.dead,
    };
  }

  #lastAttempt(key: Omit<AcceptanceKey, 'attempt'>): number {
    for (const [id, last] of this.#attempts) {
      const [tenant, root, sender, handoffId] = JSON.parse(id);
      if (tenant === key.tenant && root === key.root && sender === key.sender && handoffId === key.handoffId)
        return last;
    }
    return 0;
  }

  addPending(rows: readonly PendingColumns[], tasks: readonly TaskColumns[]): void {
    const { tables } = this.#state;
    for (const row of rows) tables.pending.put(toPending(row), ...attemptKey(toPending(row).key));
    for (const task of tasks) tables.tasks.put(toTask(task), task.tenant, task.id);
  }

  /** What can be claimed, for a command that claims. */
  offerFree(offers: readonly OfferColumns[], items: readonly WorkColumns[]): void {
    for (const columns of offers) this.#putOffer(columns);
    for (const columns of items) this.#putWork(columns);
  }

  addPushes({ tasks = [], pushes, notifications }: PushRows): void {
    const { tables } = this.#state;
    for (const task of tasks) tables.tasks.put(toTask(task), task.tenant, task.id);
    for (const row of pushes) tables.pushes.put(toPush(row), row.push_id);
    for (const row of notifications) tables.notifications.put(toNotification(row), row.push_id, row.seq);
  }

  /** The plan and the task that a command is about, which are read while it holds the case. */
  addCandidates(plan: CandidatePlan | null, task: SentTask | null): void {
    const { tables } = this.#state;
    if (plan !== null) tables.plans.put(plan, ...refKey(plan.ref));
    if (task !== null) tables.sentTasks.put(task, ...attemptKey(task.key));
  }

  #mark(ref: CaseRef | undefined, quarantined: boolean | null): void {
    if (ref !== undefined) this.#quarantined.set(JSON.stringify(refKey(ref)), quarantined ?? false);
  }

  #putOffer(columns: OfferColumns): StoredOffer {
    const offer = toOffer(columns);
    this.#state.tables.offers.put(offer, ...attemptKey(offer.key));
    return offer;
  }

  #putWork(columns: WorkColumns): void {
    const item = toWork(columns);
    this.#state.tables.work.put(item, item.ref.tenant, item.id);
  }
}
