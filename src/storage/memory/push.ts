import { toUtc } from '../../core/index.js';
import type { Change, Notification, NotificationEntry, PushConfig } from '../../ledger/index.js';
import type { ChangeHandlers, NotificationFilter, PushQueries } from '../engine.js';
import type { Table } from './tables.js';

export interface PushTables {
  readonly pushes: Table<PushConfig>;
  readonly notifications: Table<Notification>;
}

type PushChange =
  | 'add_push'
  | 'set_push'
  | 'remove_push'
  | 'notify'
  | 'set_notification'
  | 'remove_notification'
  | 'bury_notifications';

export function pushHandlersOf({ pushes, notifications }: PushTables): Pick<ChangeHandlers, PushChange> {
  return {
    add_push: ({ row }) => pushes.add(row, row.pushId),
    set_push: ({ row }) => pushes.replace(row, ({ rev }) => rev === row.rev - 1, row.pushId),
    remove_push({ tenant, pushId }) {
      const its = (row: { readonly tenant: string; readonly pushId: string }) =>
        row.tenant === tenant && row.pushId === pushId;
      pushes.remove(its);
      notifications.remove(its);
    },
    notify: (change) => notify({ pushes, notifications }, change),
    set_notification: ({ row }) => notifications.replace(row, () => true, row.pushId, row.seq),
    remove_notification: ({ tenant, pushId, seq }) =>
      notifications.remove((row) => row.tenant === tenant && row.pushId === pushId && row.seq === seq),
    bury_notifications({ tenant, pushId, reason, at }) {
      const waiting = notifications.where(
        (row) => row.tenant === tenant && row.pushId === pushId && row.state === 'waiting',
      );
      for (const row of waiting) {
        notifications.put({ ...row, state: 'dead', reason, triedAt: at }, row.pushId, row.seq);
      }
    },
  };
}

function notify(
  { pushes, notifications }: PushTables,
  { tenant, taskId, pushId, seq, body, at }: Extract<Change, { do: 'notify' }>,
): void {
  const told = pushes.where(
    (row) =>
      row.tenant === tenant &&
      row.taskId === taskId &&
      row.state === 'active' &&
      (pushId === null || row.pushId === pushId),
  );
  for (const push of told) {
    pushes.put({ ...push, dueAt: push.dueAt ?? at, rev: push.rev + 1 }, push.pushId);
    const fresh = { state: 'waiting', at, since: at, tries: 0, triedAt: null, reason: null } as const;
    notifications.add({ tenant, pushId: push.pushId, seq, body, ...fresh }, push.pushId, seq);
  }
}

/** A configuration is nobody's once its holder's lease is gone. */
export function letGo({ pushes }: PushTables, isGone: (holder: string) => boolean): void {
  for (const row of pushes.where(({ holder }) => holder !== null && isGone(holder))) {
    pushes.put({ ...row, holder: null }, row.pushId);
  }
}

export function pushQueriesOf(
  { pushes, notifications }: PushTables,
  now: Date,
  alive: (holder: string) => boolean,
): PushQueries {
  const bySeq = (a: Notification, b: Notification) => a.seq - b.seq;
  const entryOf = (row: Notification): NotificationEntry[] => {
    const push = pushes.get(row.pushId);
    if (push === null) return [];
    const { body: _, ...entry } = row;
    const { taskId, configId, origin, dueAt } = push;
    return [{ ...entry, taskId, configId, origin, dueAt }];
  };
  const ofTenant = (tenant: string) => notifications.where((row) => row.tenant === tenant);
  return {
    pushes: (tenant, taskId) => pushes.where((row) => row.tenant === tenant && row.taskId === taskId),
    push: (tenant, pushId) =>
      pushes.where((row) => row.tenant === tenant && row.pushId === pushId)[0] ?? null,
    waiting: (tenant, pushId) =>
      ofTenant(tenant)
        .filter((row) => row.pushId === pushId && row.state === 'waiting')
        .sort(bySeq)
        .slice(0, 2),
    duePushes: ({ tenant, agent, holder, without, working, limit }) =>
      pushes
        .where(
          (row) =>
            row.tenant === tenant &&
            row.agent === agent &&
            row.dueAt !== null &&
            row.dueAt <= toUtc(now) &&
            !without.includes(row.origin) &&
            !working.includes(row.pushId) &&
            (row.holder === null || row.holder === holder || !alive(row.holder)),
        )
        .sort((a, b) => compare(a.dueAt ?? '', b.dueAt ?? ''))
        .slice(0, limit),
    dead: ({ tenant, agent, pushId, seq, before, limit }) =>
      ofTenant(tenant)
        .filter(
          (row) =>
            row.state === 'dead' &&
            pushes.get(row.pushId)?.agent === agent &&
            (pushId === undefined || row.pushId === pushId) &&
            (seq === undefined || row.seq === seq) &&
            (before === undefined || (row.triedAt ?? row.at) < before),
        )
        .sort(
          (a, b) =>
            compare(a.triedAt ?? a.at, b.triedAt ?? b.at) || compare(a.pushId, b.pushId) || bySeq(a, b),
        )
        .slice(0, limit),
    notifications: (tenant, { state, pushId, limit }: NotificationFilter) =>
      ofTenant(tenant)
        .filter(
          (row) =>
            (state === undefined || row.state === state) && (pushId === undefined || row.pushId === pushId),
        )
        .sort((a, b) => compare(a.at, b.at) || compare(a.pushId, b.pushId) || bySeq(a, b))
        .slice(0, limit)
        .flatMap(entryOf),
    notification: (tenant, pushId, seq) =>
      ofTenant(tenant).find((row) => row.pushId === pushId && row.seq === seq) ?? null,
    notificationCounts(tenant) {
      const rows = ofTenant(tenant);
      const dead = rows.filter((row) => row.state === 'dead').length;
      return { waiting: rows.length - dead, dead };
    },
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
