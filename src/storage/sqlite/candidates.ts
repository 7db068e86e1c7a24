import type Database from 'better-sqlite3';
import type { AcceptanceKey, CaseRef } from '../../core/index.js';
import type { CandidatePlan, SentTask } from '../../ledger/index.js';
import { isAsked, isCurrent, isQuarantined } from '../rows/candidate-sql.js';
import {
  ofPlan,
  ofSentTask,
  PLAN_COLUMNS,
  type PlanColumns,
  SENT_TASK_COLUMNS,
  type SentTaskColumns,
  toPlan,
  toSentTask,
} from '../rows/candidates.js';
import { type KeyColumns, ofKey, ofRef, type RefColumns } from '../rows/keys.js';
import { exactlyOne } from './errors.js';
import { insertInto, THIS_ATTEMPT, THIS_CASE } from './keys.js';

/** Inserts, or takes the place of the row with this primary key. */
function put(table: string, key: readonly string[], columns: readonly string[]): string {
  const others = columns.filter((column) => !key.includes(column));
  return `${insertInto(table, columns)} ON CONFLICT (${key.join(', ')})
    DO UPDATE SET ${others.map((column) => `${column} = excluded.${column}`).join(', ')}`;
}

const ALL = -1;

export function candidateTable(db: Database.Database) {
  const plan = db.prepare<RefColumns, PlanColumns>(`SELECT * FROM candidate_plans WHERE ${THIS_CASE}`);
  const plans = db.prepare<[string, string, number], PlanColumns>(
    `SELECT * FROM candidate_plans p WHERE tenant = ? AND sender = ? AND state = 'active'
     AND NOT ${isQuarantined('')} ORDER BY at, rowid LIMIT ?`,
  );
  const exhausted = db.prepare<[string, number], PlanColumns>(
    `SELECT * FROM candidate_plans p WHERE tenant = ? AND state = 'exhausted' AND ${isCurrent('')}
     ORDER BY at, rowid LIMIT ?`,
  );
  const setPlan = db.prepare<PlanColumns>(
    put('candidate_plans', ['tenant', 'root', 'case_id'], PLAN_COLUMNS),
  );
  const task = db.prepare<KeyColumns, SentTaskColumns>(`SELECT * FROM sent_tasks WHERE ${THIS_ATTEMPT}`);
  const ofCase = db.prepare<RefColumns, SentTaskColumns>(
    `SELECT * FROM sent_tasks WHERE ${THIS_CASE} ORDER BY rowid`,
  );
  const by = db.prepare<[string, string, string], SentTaskColumns>(
    'SELECT * FROM sent_tasks WHERE tenant = ? AND sender = ? AND task_id = ? ORDER BY rowid',
  );
  const asked = db.prepare<[string, number], SentTaskColumns>(
    `SELECT * FROM sent_tasks s WHERE tenant = ? AND ${isAsked('')} ORDER BY at, rowid LIMIT ?`,
  );
  const setTask = db.prepare<SentTaskColumns>(
    put('sent_tasks', ['tenant', 'root', 'sender', 'handoff_id', 'attempt'], SENT_TASK_COLUMNS),
  );
  return {
    plan(ref: CaseRef): CandidatePlan | null {
      const row = plan.get(ofRef(ref));
      return row === undefined ? null : toPlan(row);
    },
    plans: (tenant: string, sender: string, limit: number): CandidatePlan[] =>
      plans.all(tenant, sender, limit).map(toPlan),
    exhausted: (tenant: string, limit: number | undefined): CandidatePlan[] =>
      exhausted.all(tenant, limit ?? ALL).map(toPlan),
    setPlan: (row: CandidatePlan): void => exactlyOne(setPlan.run(ofPlan(row))),
    task(key: AcceptanceKey): SentTask | null {
      const row = task.get(ofKey(key));
      return row === undefined ? null : toSentTask(row);
    },
    tasksOf: (ref: CaseRef): SentTask[] => ofCase.all(ofRef(ref)).map(toSentTask),
    tasksBy: (tenant: string, sender: string, taskId: string): SentTask[] =>
      by.all(tenant, sender, taskId).map(toSentTask),
    asked: (tenant: string, limit: number | undefined): SentTask[] =>
      asked.all(tenant, limit ?? ALL).map(toSentTask),
    setTask: (row: SentTask): void => exactlyOne(setTask.run(ofSentTask(row))),
  };
}
