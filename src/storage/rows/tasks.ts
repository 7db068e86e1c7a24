import type { TaskRow } from '../../ledger/index.js';

export interface TaskColumns {
  tenant: string;
  id: string;
  peer: string;
  context_id: string;
  state: string;
  version: number;
  status_at: string;
  task: string;
  handoff_id: string | null;
}

export const TASK_COLUMNS = [
  'tenant',
  'id',
  'peer',
  'context_id',
  'state',
  'version',
  'status_at',
  'task',
  'handoff_id',
] as const satisfies readonly (keyof TaskColumns)[];

export const toTask = (row: TaskColumns): TaskRow => ({
  id: row.id,
  tenant: row.tenant,
  peer: row.peer,
  contextId: row.context_id,
  state: row.state,
  version: row.version,
  statusAt: row.status_at,
  task: row.task,
  handoffId: row.handoff_id,
});

export const ofTask = (row: TaskRow): TaskColumns => ({
  tenant: row.tenant,
  id: row.id,
  peer: row.peer,
  context_id: row.contextId,
  state: row.state,
  version: row.version,
  status_at: row.statusAt,
  task: row.task,
  handoff_id: row.handoffId,
});
