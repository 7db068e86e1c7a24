import { toUtc } from '../../core/index.js';
import type {
  DeadFilter,
  Notification,
  NotificationEntry,
  PushClaim,
  PushConfig,
} from '../../ledger/index.js';
import type { NotificationFilter } from '../engine.js';
import {
  ENTRY,
  type EntryColumns,
  type NotificationColumns,
  type PushColumns,
  toEntry,
  toNotification,
  toPush,
} from '../rows/push.js';
import type { TaskColumns } from '../rows/tasks.js';
import type { Session } from './connection.js';
import type { Ask } from './keys.js';

/** What a command about push notifications is about; it is held until the command is carried out. */
export type PushScope =
  | { readonly task: string }
  | { readonly push: string }
  | { readonly due: PushClaim }
  | { readonly dead: DeadFilter };

export interface PushRows {
  readonly tasks?: readonly TaskColumns[];
  readonly pushes: readonly PushColumns[];
  readonly notifications: readonly NotificationColumns[];
}

const HOLD_TASK = {
  name: 'hold task',
  text: 'SELECT * FROM holdfast.tasks WHERE tenant = $1 AND id = $2 FOR NO KEY UPDATE',
};
const OF_TASK_TEXT = 'SELECT * FROM holdfast.push_configs WHERE tenant = $1 AND task_id = $2 ORDER BY ord';
const OF_TASK = { name: 'pushes of task', text: OF_TASK_TEXT };
const HOLD_OF_TASK = { name: 'hold pushes of task', text: `${OF_TASK_TEXT} FOR NO KEY UPDATE` };
const HOLD_ALL = {
  name: 'hold pushes',
  text: `SELECT * FROM holdfast.push_configs WHERE tenant = $1 AND push_id IN (SELECT jsonb_array_elements_text($2::jsonb))
    ORDER BY push_id FOR NO KEY UPDATE`,
};
/** Rows that another process looks at to claim are passed over. */
const HOLD_DUE = {
  name: 'hold due pushes',
  text: `SELECT c.* FROM holdfast.push_configs c WHERE c.tenant = $1 AND c.agent = $2 AND c.due_at <= $3
    AND c.origin NOT IN (SELECT jsonb_array_elements_text($5::jsonb))
    AND c.push_id NOT IN (SELECT jsonb_array_elements_text($6::jsonb))
    AND NOT EXISTS (SELECT 1 FROM holdfast.holders h WHERE h.holder = c.holder AND h.until > $3 AND h.holder <> $7)
    ORDER BY c.due_at LIMIT $4 FOR NO KEY UPDATE OF c SKIP LOCKED`,
};
/** The two oldest that wait for each. */
const WAITING = {
  name: 'waiting notifications',
  text: `SELECT n.* FROM jsonb_array_elements_text($2::jsonb) p, LATERAL (SELECT * FROM holdfast.notifications n
    WHERE n.push_id = p COLLATE "C" AND n.tenant = $1 AND n.state = 'waiting' ORDER BY n.seq LIMIT 2) n`,
};
const DEAD = {
  name: 'dead notifications',
  text: `SELECT n.* FROM holdfast.notifications n JOIN holdfast.push_configs c ON c.push_id = n.push_id
    WHERE n.tenant = $1 AND n.state = 'dead' AND c.agent = $2 AND ($3::text IS NULL OR n.push_id = $3)
      AND ($4::bigint IS NULL OR n.seq = $4) AND ($5::text IS NULL OR coalesce(n.tried_at, n.at) < $5)
    ORDER BY coalesce(n.tried_at, n.at), n.push_id, n.seq LIMIT $6`,
};
const LIST = {
  name: 'notifications',
  text: `SELECT ${ENTRY} FROM holdfast.notifications n JOIN holdfast.push_configs c ON c.push_id = n.push_id
    WHERE n.tenant = $1 AND ($2::text IS NULL OR n.state = $2) AND ($3::text IS NULL OR n.push_id = $3)
    ORDER BY n.at, n.push_id, n.seq LIMIT $4`,
};
const ONE = {
  name: 'notification',
  text: 'SELECT * FROM holdfast.notifications WHERE tenant = $1 AND push_id = $2 AND seq = $3',
};
const COUNTS = {
  name: 'notification counts',
  text: `SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'dead') AS dead
    FROM holdfast.notifications WHERE tenant = $1`,
};

/** Inside a transaction, which holds what it finds: what waits for a configuration is looked up only once that is held. */
export async function pushRows(
  session: Session,
  tenant: string,
  scope: PushScope,
  now: Date,
): Promise<PushRows> {
  if ('task' in scope) {
    return {
      // As it is once nobody changes it any more.
      tasks: await session.query<TaskColumns>(HOLD_TASK, [tenant, scope.task]),
      pushes: await session.query<PushColumns>(HOLD_OF_TASK, [tenant, scope.task]),
      notifications: [],
    };
  }
  if ('dead' in scope) {
    const { agent, pushId, seq, before, limit } = scope.dead;
    const found = await session.query<NotificationColumns>(DEAD, [tenant, agent, pushId, seq, before, limit]);
    const pushes = await holdAll(session, tenant, [...new Set(found.map(({ push_id }) => push_id))]);
    // Again, now that nobody changes them any more.
    return {
      pushes,
      notifications: await session.query<NotificationColumns>(DEAD, [
        tenant,
        agent,
        pushId,
        seq,
        before,
        limit,
      ]),
    };
  }
  const pushes =
    'push' in scope ? await holdAll(session, tenant, [scope.push]) : await due(session, scope.due, now);
  const ids = JSON.stringify(pushes.map(({ push_id }) => push_id));
  return { pushes, notifications: await session.query<NotificationColumns>(WAITING, [tenant, ids]) };
}

function holdAll(session: Session, tenant: string, ids: readonly string[]): Promise<PushColumns[]> {
  return session.query<PushColumns>(HOLD_ALL, [tenant, JSON.stringify(ids)]);
}

function due(session: Session, claim: PushClaim, now: Date): Promise<PushColumns[]> {
  const { tenant, agent, holder, limit, without, working } = claim;
  const values = [tenant, agent, toUtc(now), limit, JSON.stringify(without), JSON.stringify(working), holder];
  return session.query<PushColumns>(HOLD_DUE, values);
}

export const pushTable = (ask: Ask) => ({
  ofTask: async (tenant: string, taskId: string): Promise<PushConfig[]> =>
    (await ask<PushColumns>(OF_TASK, [tenant, taskId])).map(toPush),
  list: async (tenant: string, { state, pushId, limit }: NotificationFilter): Promise<NotificationEntry[]> =>
    (await ask<EntryColumns>(LIST, [tenant, state, pushId, limit])).map(toEntry),
  async one(tenant: string, pushId: string, seq: number): Promise<Notification | null> {
    const [row] = await ask<NotificationColumns>(ONE, [tenant, pushId, seq]);
    return row === undefined ? null : toNotification(row);
  },
  async counts(tenant: string) {
    const [row] = await ask<{ waiting: number; dead: number }>(COUNTS, [tenant]);
    return row ?? { waiting: 0, dead: 0 };
  },
});
