import type Database from 'better-sqlite3';
import type { CaseRef } from '../../core/index.js';
import type { Guard, WorkClaim, WorkItem } from '../../ledger/index.js';
import type { WorkFilter } from '../engine.js';
import { ofGuard, ofRef, type RefColumns } from '../rows/keys.js';
import { ofWork, toWork, WORK_COLUMNS, type WorkColumns } from '../rows/work.js';
import { exactlyOne } from './errors.js';
import { FENCE, insertInto, isFree, THIS_CASE, whereGiven } from './keys.js';
import type { Prepared } from './prepared.js';

export function workTable(db: Database.Database, prepared: Prepared) {
  const get = db.prepare<[string, string], WorkColumns>(
    'SELECT * FROM work_items WHERE tenant = ? AND id = ?',
  );
  const open = db.prepare<RefColumns, WorkColumns>(
    `SELECT * FROM work_items WHERE ${THIS_CASE} AND state = 'open'`,
  );
  const ofCase = db.prepare<RefColumns, WorkColumns>(
    `SELECT * FROM work_items WHERE ${THIS_CASE} ORDER BY rowid`,
  );
  const add = db.prepare<object>(insertInto('work_items', WORK_COLUMNS, true));
  const set = `UPDATE work_items SET state = @state, result = @result, settled_at = @settled_at
    WHERE ${THIS_CASE} AND id = @id AND state = 'open'`;
  const supersede = db.prepare<object>(set);
  const settle = db.prepare<object>(`${set} AND ${FENCE}`);
  return {
    get(tenant: string, id: string): WorkItem | null {
      const row = get.get(tenant, id);
      return row === undefined ? null : toWork(row);
    },
    open: (ref: CaseRef): WorkItem[] => open.all(ofRef(ref)).map(toWork),
    ofCase: (ref: CaseRef): WorkItem[] => ofCase.all(ofRef(ref)).map(toWork),
    list(tenant: string, { owner, state, caseId, limit }: WorkFilter): WorkItem[] {
      const given = { owner, state, case_id: caseId };
      const sql = `SELECT * FROM work_items WHERE tenant = @tenant${whereGiven(given)} ORDER BY rowid LIMIT @limit`;
      return prepared.all<WorkColumns>(sql, { tenant, ...given, limit: limit ?? -1 }).map(toWork);
    },
    free({ tenant, agent, workId, limit }: WorkClaim, now: string): WorkItem[] {
      const given = { owner: agent, id: workId };
      const sql = `SELECT * FROM work_items o WHERE tenant = @tenant${whereGiven(given)} AND state = 'open'
        AND ${isFree('work', 'o.id')} ORDER BY rowid LIMIT @limit`;
      return prepared.all<WorkColumns>(sql, { tenant, ...given, now, limit }).map(toWork);
    },
    add: (guard: Guard, row: WorkItem): void => exactlyOne(add.run({ ...ofWork(row), ...ofGuard(guard) })),
    supersede: (row: WorkItem): void => exactlyOne(supersede.run(ofWork(row))),
    settle: (guard: Guard, row: WorkItem): void =>
      exactlyOne(settle.run({ ...ofWork(row), ...ofGuard(guard) })),
  };
}
