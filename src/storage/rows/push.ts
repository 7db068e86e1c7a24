import type { Notification, NotificationEntry, PushConfig } from '../../ledger/index.js';

export interface PushColumns {
  tenant: string;
  push_id: string;
  task_id: string;
  config_id: string;
  agent: string;
  url: string;
  origin: string;
  token: string | null;
  scheme: string | null;
  credentials: string | null;
  state: PushConfig['state'];
  holder: string | null;
  due_at: string | null;
  rev: number;
  created_at: string;
}

export const PUSH_COLUMNS = [
  'tenant',
  'push_id',
  'task_id',
  'config_id',
  'agent',
  'url',
  'origin',
  'token',
  'scheme',
  'credentials',
  'state',
  'holder',
  'due_at',
  'rev',
  'created_at',
] as const satisfies readonly (keyof PushColumns)[];

export const toPush = (row: PushColumns): PushConfig => ({
  tenant: row.tenant,
  pushId: row.push_id,
  taskId: row.task_id,
  configId: row.config_id,
  agent: row.agent,
  url: row.url,
  origin: row.origin,
  token: row.token,
  scheme: row.scheme,
  credentials: row.credentials,
  state: row.state,
  holder: row.holder,
  dueAt: row.due_at,
  rev: row.rev,
  createdAt: row.created_at,
});

export const ofPush = (row: PushConfig): PushColumns => ({
  tenant: row.tenant,
  push_id: row.pushId,
  task_id: row.taskId,
  config_id: row.configId,
  agent: row.agent,
  url: row.url,
  origin: row.origin,
  token: row.token,
  scheme: row.scheme,
  credentials: row.credentials,
  state: row.state,
  holder: row.holder,
  due_at: row.dueAt,
  rev: row.rev,
  created_at: row.createdAt,
});

export interface NotificationColumns {
  tenant: string;
  push_id: string;
  seq: number;
  body: string;
  state: Notification['state'];
  at: string;
  since: string;
  tries: number;
  tried_at: string | null;
  reason: string | null;
}

export const toNotification = (row: NotificationColumns): Notification => ({
  tenant: row.tenant,
  pushId: row.push_id,
  seq: row.seq,
  body: row.body,
  state: row.state,
  at: row.at,
  since: row.since,
  tries: row.tries,
  triedAt: row.tried_at,
  reason: row.reason,
});

export const ofNotification = (row: Notification): NotificationColumns => ({
  tenant: row.tenant,
  push_id: row.pushId,
  seq: row.seq,
  body: row.body,
  state: row.state,
  at: row.at,
  since: row.since,
  tries: row.tries,
  tried_at: row.triedAt,
  reason: row.reason,
});

/** Of a notification `n` and its configuration `c`. */
export const ENTRY =
  'n.tenant, n.push_id, n.seq, n.state, n.at, n.since, n.tries, n.tried_at, n.reason, c.task_id, c.config_id, c.origin, c.due_at';

export type EntryColumns = Omit<NotificationColumns, 'body'> &
  Pick<PushColumns, 'task_id' | 'config_id' | 'origin' | 'due_at'>;

export function toEntry(row: EntryColumns): NotificationEntry {
  const { body: _, ...entry } = toNotification({ ...row, body: '' });
  return { ...entry, taskId: row.task_id, configId: row.config_id, origin: row.origin, dueAt: row.due_at };
}
