import type { TaskWatch } from '../../ledger/index.js';

export interface WatchColumns {
  tenant: string;
  watch_id: string;
  agent: string;
  peer: string;
  task_id: string;
  token_hash: string;
  secret: string;
  created_at: string;
  until: string;
}

export const WATCH_COLUMNS = [
  'tenant',
  'watch_id',
  'agent',
  'peer',
  'task_id',
  'token_hash',
  'secret',
  'created_at',
  'until',
] as const satisfies readonly (keyof WatchColumns)[];

export const toWatch = (row: WatchColumns): TaskWatch => ({
  tenant: row.tenant,
  watchId: row.watch_id,
  agent: row.agent,
  peer: row.peer,
  taskId: row.task_id,
  tokenHash: row.token_hash,
  secret: row.secret,
  createdAt: row.created_at,
  until: row.until,
});

export const ofWatch = (row: TaskWatch): WatchColumns => ({
  tenant: row.tenant,
  watch_id: row.watchId,
  agent: row.agent,
  peer: row.peer,
  task_id: row.taskId,
  token_hash: row.tokenHash,
  secret: row.secret,
  created_at: row.createdAt,
  until: row.until,
});
