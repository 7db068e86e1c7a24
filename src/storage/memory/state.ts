import { chain } from '../../audit/index.js';
import { type CaseRef, HoldfastError, isSameCase, newId } from '../../core/index.js';
import type {
  AuditEntry,
  AwaitedPeer,
  CandidatePlan,
  CaseFacts,
  CaseRow,
  ClaimRow,
  DecisionRow,
  Guard,
  HeardIncarnation,
  Incarnation,
  KindDefinition,
  NoteRow,
  Notification,
  PendingOffer,
  PushConfig,
  Quarantine,
  SentTask,
  StoredEffect,
  StoredOffer,
  TaskRow,
  TaskWatch,
  Transfer,
  WorkItem,
} from '../../ledger/index.js';
import type { ChangeHandlers } from '../engine.js';
import { candidateHandlersOf } from './candidates.js';
import { incarnationHandlersOf } from './incarnations.js';
import { attemptKey, refKey } from './keys.js';
import { letGoOfPending, pendingHandlersOf } from './pending.js';
import { letGo, pushHandlersOf } from './push.js';
import { Journal, type Table } from './tables.js';
import { type Heard, watchHandlersOf } from './watch.js';

export interface Chained {
  readonly ref: CaseRef;
  readonly entries: readonly AuditEntry[];
}

export interface State {
  readonly incarnation: string;
  readonly journal: Journal;
  readonly tables: ReturnType<typeof tablesOf>;
}

export function emptyState(): State {
  const journal = new Journal();
  return { incarnation: newId('inc'), journal, tables: tablesOf(journal) };
}

/** All of it as it is now; what happens to the one is nothing to the other. */
export function copyOf({ incarnation, tables }: State): State {
  const journal = new Journal();
  const copies = tablesOf(journal);
  for (const [name, table] of Object.entries(tables)) {
    const copy = copies[name as keyof typeof copies] as Table<unknown>;
    copy.copyFrom(table as Table<unknown>);
  }
  return { incarnation, journal, tables: copies };
}

function tablesOf(journal: Journal) {
  return {
    kinds: journal.table<{ readonly tenant: string; readonly kind: KindDefinition }>(),
    cases: journal.table<CaseRow>(),
    offers: journal.table<StoredOffer>(),
    decisions: journal.table<DecisionRow>(),
    pending: journal.table<PendingOffer>(),
    work: journal.table<WorkItem>(),
    notes: journal.table<NoteRow>(),
    effects: journal.table<StoredEffect>(),
    transfers: journal.table<Transfer>(),
    tasks: journal.table<TaskRow>(),
    audit: journal.table<Chained>(),
    holders: journal.table<{ readonly holder: string; readonly until: string }>(),
    claims: journal.table<ClaimRow>(),
    quarantines: journal.table<Quarantine>(),
    pushes: journal.table<PushConfig>(),
    notifications: journal.table<Notification>(),
    plans: journal.table<CandidatePlan>(),
    sentTasks: journal.table<SentTask>(),
    watches: journal.table<TaskWatch>(),
    heard: journal.table<Heard>(),
    incarnations: journal.table<Incarnation>(),
    awaited: journal.table<AwaitedPeer>(),
    heardFrom: journal.table<HeardIncarnation>(),
  };
}

/** Each change with the guards that the SQL statements have. */
export function handlersOf({ tables }: State): ChangeHandlers {
  const { kinds, cases, offers, decisions, work, notes, effects, tasks, holders, claims, quarantines } =
    tables;
  const { transfers } = tables;
  const fence = ({ ref, owner, epoch }: Guard): CaseRow => {
    const row = cases.get(...refKey(ref));
    if (row?.owner !== owner || row.epoch !== epoch || row.status !== 'open') {
      throw new HoldfastError('internal', 'An invariant of the ledger does not hold.');
    }
    return row;
  };
  const setWork = (row: WorkItem): void =>
    work.replace(row, (item) => item.state === 'open', row.ref.tenant, row.id);
  const endLeases = (ends: (row: { readonly holder: string; readonly until: string }) => boolean): void => {
    holders.remove(ends);
    const isGone = (holder: string) => holders.get(holder) === null;
    claims.remove((claim) => isGone(claim.holder));
    letGo(tables, isGone);
    letGoOfPending(tables, isGone);
  };
  return {
    put_kind: ({ tenant, kind }) => kinds.put({ tenant, kind }, tenant, kind.kind),
    open_case: ({ row }) => cases.add(row, ...refKey(row.ref)),
    move_case({ guard, to }) {
      fence(guard);
      const moves = (row: CaseRow) => to.epoch === row.epoch + 1 && to.owner !== row.owner;
      cases.replace(to, moves, ...refKey(guard.ref));
    },
    leap_case({ guard, to, transfer }) {
      fence(guard);
      transfers.add(transfer, ...refKey(guard.ref), transfer.newEpoch);
      const leaps = (row: CaseRow) =>
        to.epoch === transfer.newEpoch && to.owner === transfer.toAgent && row.epoch < transfer.oldEpoch;
      cases.replace(to, leaps, ...refKey(guard.ref));
    },
    close_case({ guard, closedAt }) {
      const row = fence(guard);
      cases.put({ ...row, status: 'closed', closedAt }, ...refKey(guard.ref));
    },
    add_offer({ guard, row }) {
      fence(guard);
      offers.add(row, ...attemptKey(row.key));
    },
    set_offer({ from, row }) {
      const intendedSeq = offers.get(...attemptKey(row.key))?.intendedSeq ?? 0;
      offers.replace({ ...row, intendedSeq }, (offer) => offer.state === from, ...attemptKey(row.key));
    },
    add_decision: ({ row }) => decisions.add(row, ...attemptKey(row.key)),
    add_transfer: ({ row }) => transfers.add(row, ...refKey(row.ref), row.newEpoch),
    add_work({ guard, row }) {
      fence(guard);
      work.add(row, row.ref.tenant, row.id);
    },
    supersede_work: ({ row }) => setWork(row),
    settle_work({ guard, row }) {
      fence(guard);
      setWork(row);
    },
    add_note({ guard, row }) {
      fence(guard);
      notes.add(row, ...refKey(row.ref), row.id);
    },
    start_effect({ guard, again, row }) {
      fence(guard);
      const key = [...refKey(row.ref), row.key] as const;
      if (again) effects.replace(row, (effect) => effect.state === 'failed', ...key);
      else effects.add(row, ...key);
    },
    settle_effect({ guard, row }) {
      fence(guard);
      const unsettled = (effect: StoredEffect) => effect.state === 'started' || effect.state === 'unknown';
      effects.replace(row, unsettled, ...refKey(row.ref), row.key);
    },
    add_task: ({ row }) => tasks.add(row, row.tenant, row.id),
    save_task: ({ row }) =>
      tasks.replace(row, (task) => task.version === row.version - 1, row.tenant, row.id),
    keep_lease({ holder, until, now }) {
      endLeases((row) => row.until <= now);
      holders.put({ holder, until }, holder);
    },
    end_lease: ({ holder }) => endLeases((row) => row.holder === holder),
    claim: ({ row }) => claims.put(row, row.tenant, row.what, row.id),
    unclaim: ({ row }) =>
      claims.remove(
        ({ tenant, what, id, holder }) =>
          tenant === row.tenant && what === row.what && id === row.id && holder === row.holder,
      ),
    quarantine: ({ row }) => quarantines.add(row, ...refKey(row.ref)),
    ...pendingHandlersOf(tables),
    ...pushHandlersOf(tables),
    ...watchHandlersOf(tables),
    ...candidateHandlersOf(tables),
    ...incarnationHandlersOf(tables),
    lift_quarantine({ ref, from, epoch }) {
      const row = cases.get(...refKey(ref));
      if (row !== null) cases.replace({ ...row, epoch }, (before) => before.epoch === from, ...refKey(ref));
      quarantines.remove((one) => isSameCase(one.ref, ref));
    },
  };
}

export function append(state: State, { ref, facts }: CaseFacts, at: string): void {
  const { audit } = state.tables;
  const entries = [...(audit.get(...refKey(ref))?.entries ?? [])];
  for (const fact of facts) {
    const { entry, bytes } = chain(entries.at(-1) ?? null, fact, ref, at);
    entries.push({ ...JSON.parse(bytes), hash: entry.hash });
  }
  audit.put({ ref, entries }, ...refKey(ref));
}
