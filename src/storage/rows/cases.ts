import type { CaseRow } from '../../ledger/index.js';
import { ofRef, type RefColumns, toRef } from './keys.js';

export interface CaseColumns extends RefColumns {
  kind: string;
  status: CaseRow['status'];
  owner: string;
  epoch: number;
  opened_by: string;
  opened_at: string;
  closed_at: string | null;
  contract: string | null;
  constraints: string;
  hops: string;
  tasks_left: number;
}

export const CASE_COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'kind',
  'status',
  'owner',
  'epoch',
  'opened_by',
  'opened_at',
  'closed_at',
  'contract',
  'constraints',
  'hops',
  'tasks_left',
] as const satisfies readonly (keyof CaseColumns)[];

export const toCase = (row: CaseColumns): CaseRow => ({
  ref: toRef(row),
  kind: row.kind,
  status: row.status,
  owner: row.owner,
  epoch: row.epoch,
  openedBy: row.opened_by,
  openedAt: row.opened_at,
  closedAt: row.closed_at,
  contract: row.contract,
  constraints: JSON.parse(row.constraints),
  hops: JSON.parse(row.hops),
  tasksLeft: row.tasks_left,
});

export const ofCase = (row: CaseRow): CaseColumns => ({
  ...ofRef(row.ref),
  kind: row.kind,
  status: row.status,
  owner: row.owner,
  epoch: row.epoch,
  opened_by: row.openedBy,
  opened_at: row.openedAt,
  closed_at: row.closedAt,
  contract: row.contract,
  constraints: JSON.stringify(row.constraints),
  hops: JSON.stringify(row.hops),
  tasks_left: row.tasksLeft,
});
