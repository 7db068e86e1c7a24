import type Database from 'better-sqlite3';
import type { AcceptanceKey, CaseRef } from '../../core/index.js';
import type { DecisionRow } from '../../ledger/index.js';
import type { HandoffKey } from '../engine.js';
import { exactlyOne } from './errors.js';
import {
  insertInto,
  type KeyColumns,
  ofKey,
  ofRef,
  type RefColumns,
  THIS_ATTEMPT,
  THIS_CASE,
  toKey,
} from './keys.js';

interface Columns extends KeyColumns {
  case_id: string;
  verdict: DecisionRow['verdict'];
  code: string | null;
  digest: string | null;
  answer: string;
  task_id: string | null;
  epoch_before: number | null;
  epoch_after: number | null;
  decided_at: string;
}

const COLUMNS = [
  'tenant',
  'root',
  'sender',
  'handoff_id',
  'attempt',
  'case_id',
  'verdict',
  'code',
  'digest',
  'answer',
  'task_id',
  'epoch_before',
  'epoch_after',
  'decided_at',
] as const satisfies readonly (keyof Columns)[];

const toRow = (row: Columns): DecisionRow => ({
  key: toKey(row),
  caseId: row.case_id,
  verdict: row.verdict,
  code: row.code,
  digest: row.digest,
  answer: row.answer,
  taskId: row.task_id,
  epochBefore: row.epoch_before,
  epochAfter: row.epoch_after,
  decidedAt: row.decided_at,
});

const ofRow = (row: DecisionRow): Columns => ({
  ...ofKey(row.key),
  case_id: row.caseId,
  verdict: row.verdict,
  code: row.code,
  digest: row.digest,
  answer: row.answer,
  task_id: row.taskId,
  epoch_before: row.epochBefore,
  epoch_after: row.epochAfter,
  decided_at: row.decidedAt,
});

export function decisionTable(db: Database.Database) {
  const get = db.prepare<KeyColumns, Columns>(`SELECT * FROM decisions WHERE ${THIS_ATTEMPT}`);
  const ofCase = db.prepare<RefColumns, Columns>(`SELECT * FROM decisions WHERE ${THIS_CASE} ORDER BY rowid`);
  const last = db.prepare<object, number>(
    `SELECT coalesce(max(attempt), 0) FROM decisions WHERE tenant = @tenant AND root = @root
       AND sender = @sender AND handoff_id = @handoff_id`,
  );
  last.pluck();
  const add = db.prepare<Columns>(insertInto('decisions', COLUMNS));
  return {
    get(key: AcceptanceKey): DecisionRow | null {
      const row = get.get(ofKey(key));
      return row === undefined ? null : toRow(row);
    },
    ofCase: (ref: CaseRef): DecisionRow[] => ofCase.all(ofRef(ref)).map(toRow),
    lastAttempt: (key: HandoffKey): number =>
      last.get({ tenant: key.tenant, root: key.root, sender: key.sender, handoff_id: key.handoffId }) ?? 0,
    add: (row: DecisionRow): void => exactlyOne(add.run(ofRow(row))),
  };
}
