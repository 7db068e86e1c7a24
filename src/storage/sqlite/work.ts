import type Database from 'better-sqlite3';
import type { CaseRef } from '../../core/index.js';
import type { Guard, WorkClaim, WorkItem } from '../../ledger/index.js';
import type { WorkFilter } from '../engine.js';
import { exactlyOne } from './errors.js';
import {
  FENCE,
  insertInto,
  isFree,
  type KeyColumns,
  ofGuard,
  ofKey,
  ofRef,
  type RefColumns,
  THIS_CASE,
  toKey,
  toRef,
  whereGiven,
} from './keys.js';
import type { Prepared } from './prepared.js';

interface Columns extends RefColumns, KeyColumns {
  id: string;
  owner: string;
  epoch: number;
  contract: string;
  state: WorkItem['state'];
  envelope: string;
  result: string | null;
  created_at: string;
  settled_at: string | null;
}

const COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'id',
  'sender',
  'handoff_id',
  'attempt',
  'owner',
  'epoch',
  'contract',
  'state',
  'envelope',
  'result',
  'created_at',
  'settled_at',
] as const satisfies readonly (keyof Columns)[];

const toRow = (row: Columns): WorkItem => ({
  id: row.id,
  ref: toRef(row),
  key: toKey(row),
  owner: row.owner,
  epoch: row.epoch,
  contract: row.contract,
  state: row.state,
  envelope: row.envelope,
  result: row.result,
  createdAt: row.created_at,
  settledAt: row.settled_at,
});

const ofRow = (row: WorkItem): Columns => ({
  ...ofRef(row.ref),
  ...ofKey(row.key),
  id: row.id,
  owner: row.owner,
  epoch: row.epoch,
  contract: row.contract,
  state: row.state,
  envelope: row.envelope,
  result: row.result,
  created_at: row.createdAt,
  settled_at: row.settledAt,
});

export function workTable(db: Database.Database, prepared: Prepared) {
  const get = db.prepare<[string, string], Columns>('SELECT * FROM work_items WHERE tenant = ? AND id = ?');
  const open = db.prepare<RefColumns, Columns>(
    `SELECT * FROM work_items WHERE ${THIS_CASE} AND state = 'open'`,
  );
  const ofCase = db.prepare<RefColumns, Columns>(
    `SELECT * FROM work_items WHERE ${THIS_CASE} ORDER BY rowid`,
  );
  const add = db.prepare<object>(insertInto('work_items', COLUMNS, true));
  const set = `UPDATE work_items SET state = @state, result = @result, settled_at = @settled_at
    WHERE ${THIS_CASE} AND id = @id AND state = 'open'`;
  const supersede = db.prepare<object>(set);
  const settle = db.prepare<object>(`${set} AND ${FENCE}`);
  return {
    get(tenant: string, id: string): WorkItem | null {
      const row = get.get(tenant, id);
      return row === undefined ? null : toRow(row);
    },
    open: (ref: CaseRef): WorkItem[] => open.all(ofRef(ref)).map(toRow),
    ofCase: (ref: CaseRef): WorkItem[] => ofCase.all(ofRef(ref)).map(toRow),
    list(tenant: string, { owner, state, caseId, limit }: WorkFilter): WorkItem[] {
      const given = { owner, state, case_id: caseId };
      const sql = `SELECT * FROM work_items WHERE tenant = @tenant${whereGiven(given)} ORDER BY rowid LIMIT @limit`;
      return prepared.all<Columns>(sql, { tenant, ...given, limit: limit ?? -1 }).map(toRow);
    },
    free({ tenant, agent, workId, limit }: WorkClaim, now: string): WorkItem[] {
      const given = { owner: agent, id: workId };
      const sql = `SELECT * FROM work_items o WHERE tenant = @tenant${whereGiven(given)} AND state = 'open'
        AND ${isFree('work', 'o.id')} ORDER BY rowid LIMIT @limit`;
      return prepared.all<Columns>(sql, { tenant, ...given, now, limit }).map(toRow);
    },
    add: (guard: Guard, row: WorkItem): void => exactlyOne(add.run({ ...ofRow(row), ...ofGuard(guard) })),
    supersede: (row: WorkItem): void => exactlyOne(supersede.run(ofRow(row))),
    settle: (guard: Guard, row: WorkItem): void =>
      exactlyOne(settle.run({ ...ofRow(row), ...ofGuard(guard) })),
  };
}
