import type { AcceptanceKey, CaseRef } from '../../core/index.js';
import type { CandidatePlan, SentTask } from '../../ledger/index.js';
import { isAsked, isCurrent, isQuarantined } from '../rows/candidate-sql.js';
import { type PlanColumns, type SentTaskColumns, toPlan, toSentTask } from '../rows/candidates.js';
import { type Ask, caseOf, THIS_CASE } from './keys.js';

const PLAN = { name: 'plan', text: `SELECT * FROM holdfast.candidate_plans WHERE ${THIS_CASE}` };
const PLANS = {
  name: 'plans',
  text: `SELECT * FROM holdfast.candidate_plans p WHERE tenant = $1 AND sender = $2 AND state = 'active'
    AND NOT ${isQuarantined('holdfast.')} ORDER BY at, ord LIMIT $3`,
};
const EXHAUSTED = {
  name: 'exhausted plans',
  text: `SELECT * FROM holdfast.candidate_plans p WHERE tenant = $1 AND state = 'exhausted'
    AND ${isCurrent('holdfast.')} ORDER BY at, ord LIMIT $2`,
};
const TASK = {
  name: 'sent task',
  text: `SELECT * FROM holdfast.sent_tasks
    WHERE tenant = $1 AND root = $2 AND sender = $3 AND handoff_id = $4 AND attempt = $5::numeric`,
};
const BY_TASK = {
  name: 'sent tasks by task',
  text: 'SELECT * FROM holdfast.sent_tasks WHERE tenant = $1 AND sender = $2 AND task_id = $3 ORDER BY ord',
};
const ASKED = {
  name: 'asked',
  text: `SELECT * FROM holdfast.sent_tasks s WHERE tenant = $1 AND ${isAsked('holdfast.')} ORDER BY at, ord LIMIT $2`,
};

export const candidateTable = (ask: Ask) => ({
  async plan(ref: CaseRef): Promise<CandidatePlan | null> {
    const [row] = await ask<PlanColumns>(PLAN, caseOf(ref));
    return row === undefined ? null : toPlan(row);
  },
  plans: async (tenant: string, sender: string, limit: number): Promise<CandidatePlan[]> =>
    (await ask<PlanColumns>(PLANS, [tenant, sender, limit])).map(toPlan),
  exhausted: async (tenant: string, limit: number | undefined): Promise<CandidatePlan[]> =>
    (await ask<PlanColumns>(EXHAUSTED, [tenant, limit ?? null])).map(toPlan),
  async task({ tenant, root, sender, handoffId, attempt }: AcceptanceKey): Promise<SentTask | null> {
    const [row] = await ask<SentTaskColumns>(TASK, [tenant, root, sender, handoffId, attempt]);
    return row === undefined ? null : toSentTask(row);
  },
  tasksBy: async (tenant: string, sender: string, taskId: string): Promise<SentTask[]> =>
    (await ask<SentTaskColumns>(BY_TASK, [tenant, sender, taskId])).map(toSentTask),
  asked: async (tenant: string, limit: number | undefined): Promise<SentTask[]> =>
    (await ask<SentTaskColumns>(ASKED, [tenant, limit ?? null])).map(toSentTask),
});
