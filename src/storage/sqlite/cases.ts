import type Database from 'better-sqlite3';
import type { CaseRef } from '../../core/index.js';
import type { CaseRow, Guard } from '../../ledger/index.js';
import type { CaseFilter } from '../engine.js';
import { exactlyOne } from './errors.js';
import { insertInto, ofGuard, ofRef, type RefColumns, THIS_CASE, toRef, whereGiven } from './keys.js';
import type { Prepared } from './prepared.js';

interface Columns extends RefColumns {
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

const COLUMNS = [
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
] as const satisfies readonly (keyof Columns)[];

const toRow = (row: Columns): CaseRow => ({
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

const ofRow = (row: CaseRow): Columns => ({
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

export function caseTable(db: Database.Database, prepared: Prepared) {
  const fenced = `${THIS_CASE} AND owner = @guard_owner AND epoch = @guard_epoch AND status = 'open'`;
  const get = db.prepare<RefColumns, Columns>(`SELECT * FROM cases WHERE ${THIS_CASE}`);
  const byId = db.prepare<[string, string], Columns>(
    'SELECT * FROM cases WHERE tenant = ? AND case_id = ? ORDER BY rowid',
  );
  const open = db.prepare<Columns>(insertInto('cases', COLUMNS));
  const move = db.prepare<object>(
    `UPDATE cases SET owner = @owner, epoch = epoch + 1, contract = @contract, constraints = @constraints,
       hops = @hops, tasks_left = @tasks_left WHERE ${fenced}`,
  );
  const close = db.prepare<object>(
    `UPDATE cases SET status = 'closed', closed_at = @closed_at WHERE ${fenced}`,
  );
  return {
    get(ref: CaseRef): CaseRow | null {
      const row = get.get(ofRef(ref));
      return row === undefined ? null : toRow(row);
    },
    byId: (tenant: string, caseId: string): CaseRow[] => byId.all(tenant, caseId).map(toRow),
    list(tenant: string, { status, owner, limit }: CaseFilter): CaseRow[] {
      const given = { status, owner };
      const sql = `SELECT * FROM cases WHERE tenant = @tenant${whereGiven(given)} ORDER BY rowid DESC LIMIT @limit`;
      return prepared.all<Columns>(sql, { tenant, ...given, limit: limit ?? -1 }).map(toRow);
    },
    open: (row: CaseRow): void => exactlyOne(open.run(ofRow(row))),
    move: (guard: Guard, to: CaseRow): void => exactlyOne(move.run({ ...ofRow(to), ...ofGuard(guard) })),
    close: (guard: Guard, closedAt: string): void =>
      exactlyOne(close.run({ ...ofGuard(guard), closed_at: closedAt })),
  };
}
