import { HoldfastError, toUtc } from '../../core/index.js';
import type {
  AddPushCommand,
  DeadFilter,
  DuePush,
  NewPush,
  Notification,
  NotificationSettled,
  PushClaim,
  PushConfig,
  RemovePushCommand,
  SettleNotificationCommand,
} from '../push.js';
import type { Change, LedgerView, Rule } from './ruling.js';

/*
 * What a peer asked to hear of its task.
 *   (none)  -> waiting   in the transaction of the event, for each active configuration of the task (tasks.ts)
 *   waiting -> (none)    delivered, or its configuration was deleted
 *   waiting -> dead      given up, or its endpoint is gone
 *   dead    -> waiting   by a person
 *   dead    -> (none)    when it has been kept long enough
 * A configuration has one process at a time that delivers its notifications, oldest first. Nothing here concerns a case's audit.
 */

/** Of one task: each multiplies what an event writes. */
const MAX_PUSHES = 8;

/** The changes that make a configuration, or give one that is there its new content. @throws push_limit */
export function changesOf(
  view: LedgerView,
  { tenant, taskId, push }: { readonly tenant: string; readonly taskId: string; readonly push: NewPush },
): { readonly changes: readonly Change[]; readonly row: PushConfig; readonly isNew: boolean } {
  const there = view.pushes(tenant, taskId);
  const before = there.find(({ configId }) => configId === push.configId);
  if (before !== undefined) {
    const row: PushConfig = {
      ...before,
      ...push,
      pushId: before.pushId,
      state: 'active',
      rev: before.rev + 1,
    };
    return { changes: [{ do: 'set_push', row }], row, isNew: false };
  }
  if (there.length >= MAX_PUSHES) {
    throw new HoldfastError('push_limit', undefined, { data: { limit: MAX_PUSHES } });
  }
  const fresh = { state: 'active', holder: null, dueAt: null, rev: 1, createdAt: toUtc(view.now) } as const;
  const row: PushConfig = { ...push, tenant, taskId, ...fresh };
  return { changes: [{ do: 'add_push', row }], row, isNew: true };
}

export const addPush: Rule<AddPushCommand, PushConfig> = (view, command) => {
  const { tenant, peer, taskId, event } = command;
  const task = view.task(tenant, taskId);
  if (task === null || task.peer !== peer) throw new HoldfastError('not_found');
  const { changes, row, isNew } = changesOf(view, command);
  const { pushId } = row;
  const at = toUtc(view.now);
  // Of an offer, the task as it is now: whatever comes after it is told in its own transaction.
  const body = task.handoffId === null ? event : JSON.stringify({ task: JSON.parse(task.task) });
  const first: Change[] =
    event === undefined || body === undefined || !isNew
      ? []
      : [{ do: 'notify', tenant, taskId, pushId, seq: task.version, body, at }];
  return { changes: [...changes, ...first], audit: null, result: row };
};

/** Idempotent, and what waits for it goes with it. */
export const removePush: Rule<RemovePushCommand, void> = (view, { tenant, taskId, configId }) => {
  const found = view.pushes(tenant, taskId).find((push) => push.configId === configId);
  return {
    changes: found === undefined ? [] : [{ do: 'remove_push', tenant, pushId: found.pushId }],
    audit: null,
    result: undefined,
  };
};

export const claimPushes: Rule<PushClaim, DuePush[]> = (view, command) => {
  const { tenant, holder } = command;
  const due = view.alive(holder) ? view.duePushes(command) : [];
  const found = due.flatMap((push): DuePush[] => {
    const [notification] = view.waiting(tenant, push.pushId);
    return notification === undefined ? [] : [{ push: { ...push, holder, rev: push.rev + 1 }, notification }];
  });
  return { changes: found.map(({ push }) => ({ do: 'set_push', row: push })), audit: null, result: found };
};

export const settleNotification: Rule<SettleNotificationCommand, NotificationSettled> = (view, command) => {
  const { tenant, pushId, seq, holder, outcome } = command;
  const push = view.push(tenant, pushId);
  const [head, second] = view.waiting(tenant, pushId);
  const lost = { became: 'lost', next: null } as const;
  if (push === null || push.holder !== holder) return { changes: [], audit: null, result: lost };
  const now = toUtc(view.now);
  const after = (changes: Partial<PushConfig>): PushConfig => ({ ...push, rev: push.rev + 1, ...changes });
  // Nobody keeps what it does not work on.
  if (head?.seq !== seq) {
    return { changes: [{ do: 'set_push', row: after({ holder: null }) }], audit: null, result: lost };
  }
  const goOn = (became: 'delivered' | 'dead', change: Change) => {
    const row = after(second === undefined ? { holder: null, dueAt: null } : { dueAt: now });
    const next = second === undefined ? null : { push: row, notification: second };
    const changes: Change[] = [change, { do: 'set_push', row }];
    return { changes, audit: null, result: { became, next } };
  };
  if (outcome.what === 'delivered') {
    return goOn('delivered', { do: 'remove_notification', tenant, pushId, seq });
  }
  if (outcome.what === 'gone') {
    const row = after({ state: 'ended', holder: null, dueAt: null });
    const bury: Change = { do: 'bury_notifications', tenant, pushId, reason: 'gone', at: now };
    return { changes: [bury, { do: 'set_push', row }], audit: null, result: { became: 'dead', next: null } };
  }
  const { reason, againMs, giveUpMs } = outcome;
  const failed: Notification = { ...head, tries: head.tries + 1, triedAt: now, reason };
  // At least one try, however late it comes.
  if (view.now.getTime() - Date.parse(head.since) >= giveUpMs) {
    return goOn('dead', { do: 'set_notification', row: { ...failed, state: 'dead' } });
  }
  const dueAt = toUtc(new Date(view.now.getTime() + againMs));
  return {
    changes: [
      { do: 'set_notification', row: failed },
      { do: 'set_push', row: after({ holder: null, dueAt }) },
    ],
    audit: null,
    result: { became: 'waiting', next: null },
  };
};

/** Tells how many wait again, before any newer one. Those of an endpoint that was gone go there again. */
export const retryNotifications: Rule<DeadFilter, number> = (view, filter) => {
  const dead = view.dead(filter);
  const now = toUtc(view.now);
  const pushes = new Map(dead.map(({ tenant, pushId }) => [pushId, view.push(tenant, pushId)]));
  const changes: Change[] = [...pushes.values()].flatMap((push) =>
    push === null
      ? []
      : [{ do: 'set_push', row: { ...push, state: 'active', holder: null, dueAt: now, rev: push.rev + 1 } }],
  );
  for (const one of dead) {
    changes.push({ do: 'set_notification', row: { ...one, state: 'waiting', since: now, tries: 0 } });
  }
  return { changes, audit: null, result: dead.length };
};

/** Tells how many are gone for good. */
export const pruneNotifications: Rule<DeadFilter, number> = (view, filter) => {
  const dead = view.dead(filter);
  return {
    changes: dead.map(({ tenant, pushId, seq }) => ({ do: 'remove_notification', tenant, pushId, seq })),
    audit: null,
    result: dead.length,
  };
};
