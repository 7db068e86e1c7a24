import { type CaseRef, isSameCase, toUtc } from '../../core/index.js';
import type { PendingClaim, PendingOffer, TaskRow } from '../../ledger/index.js';
import { patienceEnds } from '../attention.js';
import type { ChangeHandlers, PendingQueries } from '../engine.js';
import { attemptKey } from './keys.js';
import type { Table } from './tables.js';

export interface PendingTables {
  readonly pending: Table<PendingOffer>;
  readonly tasks: Table<TaskRow>;
}

type PendingChange = 'save_offer_task' | 'add_pending' | 'set_pending';

export function pendingHandlersOf({ pending, tasks }: PendingTables): Pick<ChangeHandlers, PendingChange> {
  return {
    save_offer_task: ({ row }) =>
      tasks.replace(row, (task) => task.version === row.version - 1, row.tenant, row.id),
    add_pending: ({ row }) => pending.add(row, ...attemptKey(row.key)),
    set_pending: ({ row }) => pending.replace(row, ({ rev }) => rev === row.rev - 1, ...attemptKey(row.key)),
  };
}

export function pendingQueriesOf(
  { pending }: PendingTables,
  isFree: (row: PendingOffer) => boolean,
  quarantined: (ref: CaseRef) => boolean,
  now: Date,
): PendingQueries {
  const undecided = (tenant: string, toAgent: string) =>
    pending.where((row) => row.key.tenant === tenant && row.toAgent === toAgent && row.state !== 'decided');
  return {
    pending: (key) => pending.get(...attemptKey(key)),
    pendingOf: (tenant, taskId) =>
      pending.where((row) => row.key.tenant === tenant && row.taskId === taskId)[0] ?? null,
    pendings: (tenant, { toAgent, state, limit }) =>
      undecided(tenant, toAgent)
        .filter((row) => state === undefined || row.state === state)
        .slice(0, limit),
    pendingOfCase: (ref) => pending.where((row) => isSameCase(row.ref, ref)),
    awaitedDecisions: (tenant, limit) =>
      pending
        .where(
          (row) =>
            row.ref.tenant === tenant &&
            row.acceptBy >= toUtc(now) &&
            (row.state === 'waiting' || (row.state === 'deciding' && row.receivedAt < patienceEnds(now))) &&
            !quarantined(row.ref),
        )
        .sort((a, b) => (a.receivedAt < b.receivedAt ? -1 : a.receivedAt > b.receivedAt ? 1 : 0))
        .slice(0, limit),
    freePending: ({ tenant, agent, key, limit }: PendingClaim) =>
      undecided(tenant, agent)
        .filter(
          (row) =>
            (key === undefined || attemptKey(key).join(' ') === attemptKey(row.key).join(' ')) &&
            (row.state === 'deciding' || row.acceptBy < toUtc(now)) &&
            isFree(row),
        )
        .slice(0, limit),
  };
}

/** It is nobody's once its holder's lease is gone. */
export function letGoOfPending({ pending }: PendingTables, isGone: (holder: string) => boolean): void {
  for (const row of pending.where(({ holder }) => holder !== null && isGone(holder))) {
    pending.put({ ...row, holder: null }, ...attemptKey(row.key));
  }
}
