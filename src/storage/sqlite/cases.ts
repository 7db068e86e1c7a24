import type Database from 'better-sqlite3';
import type { CaseRef } from '../../core/index.js';
import type { CaseRow, Guard } from '../../ledger/index.js';
import type { CaseFilter } from '../engine.js';
import { CASE_COLUMNS, type CaseColumns, ofCase, toCase } from '../rows/cases.js';
import { ofGuard, ofRef, type RefColumns } from '../rows/keys.js';
import { exactlyOne } from './errors.js';
import { insertInto, THIS_CASE, whereGiven } from './keys.js';
import type { Prepared } from './prepared.js';

export function caseTable(db: Database.Database, prepared: Prepared) {
  const fenced = `${THIS_CASE} AND owner = @guard_owner AND epoch = @guard_epoch AND status = 'open'`;
  const get = db.prepare<RefColumns, CaseColumns>(`SELECT * FROM cases WHERE ${THIS_CASE}`);
  const byId = db.prepare<[string, string], CaseColumns>(
    'SELECT * FROM cases WHERE tenant = ? AND case_id = ? ORDER BY rowid',
  );
  const open = db.prepare<CaseColumns>(insertInto('cases', CASE_COLUMNS));
  const move = db.prepare<object>(
    `UPDATE cases SET owner = @owner, epoch = epoch + 1, contract = @contract, constraints = @constraints,
       hops = @hops, tasks_left = @tasks_left WHERE ${fenced}`,
  );
  const leap = db.prepare<object>(`UPDATE cases SET owner = @owner, epoch = @epoch WHERE ${fenced}`);
  const close = db.prepare<object>(
    `UPDATE cases SET status = 'closed', closed_at = @closed_at WHERE ${fenced}`,
  );
  const raise = db.prepare<object>(
    `UPDATE cases SET epoch = @epoch WHERE ${THIS_CASE} AND epoch = @from AND status = 'open'`,
  );
  return {
    get(ref: CaseRef): CaseRow | null {
      const row = get.get(ofRef(ref));
      return row === undefined ? null : toCase(row);
    },
    byId: (tenant: string, caseId: string): CaseRow[] => byId.all(tenant, caseId).map(toCase),
    list(tenant: string, { status, owner, limit }: CaseFilter): CaseRow[] {
      const given = { status, owner };
      const sql = `SELECT * FROM cases WHERE tenant = @tenant${whereGiven(given)} ORDER BY rowid DESC LIMIT @limit`;
      return prepared.all<CaseColumns>(sql, { tenant, ...given, limit: limit ?? -1 }).map(toCase);
    },
    open: (row: CaseRow): void => exactlyOne(open.run(ofCase(row))),
    move: (guard: Guard, to: CaseRow): void => exactlyOne(move.run({ ...ofCase(to), ...ofGuard(guard) })),
    leap: (guard: Guard, to: CaseRow): void => exactlyOne(leap.run({ ...ofCase(to), ...ofGuard(guard) })),
    raise: (ref: CaseRef, from: number, epoch: number): void =>
      exactlyOne(raise.run({ ...ofRef(ref), from, epoch })),
    close: (guard: Guard, closedAt: string): void =>
      exactlyOne(close.run({ ...ofGuard(guard), closed_at: closedAt })),
  };
}
