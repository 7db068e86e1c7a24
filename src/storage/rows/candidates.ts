import type { CandidatePlan, SentTask } from '../../ledger/index.js';
import { type KeyColumns, ofKey, ofRef, type RefColumns, toKey, toRef } from './keys.js';

export interface PlanColumns extends RefColumns {
  sender: string;
  epoch: number;
  attempt: number;
  candidates: string;
  escalate_to: string | null;
  accept_within_ms: number;
  state: CandidatePlan['state'];
  reason: string | null;
  at: string;
}

export const PLAN_COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'sender',
  'epoch',
  'attempt',
  'candidates',
  'escalate_to',
  'accept_within_ms',
  'state',
  'reason',
  'at',
] as const satisfies readonly (keyof PlanColumns)[];

export const toPlan = (row: PlanColumns): CandidatePlan => ({
  ref: toRef(row),
  sender: row.sender,
  epoch: row.epoch,
  attempt: row.attempt,
  candidates: JSON.parse(row.candidates),
  escalateTo: row.escalate_to,
  acceptWithinMs: row.accept_within_ms,
  state: row.state,
  reason: row.reason,
  at: row.at,
});

export const ofPlan = (row: CandidatePlan): PlanColumns => ({
  ...ofRef(row.ref),
  sender: row.sender,
  epoch: row.epoch,
  attempt: row.attempt,
  candidates: JSON.stringify(row.candidates),
  escalate_to: row.escalateTo,
  accept_within_ms: row.acceptWithinMs,
  state: row.state,
  reason: row.reason,
  at: row.at,
});

export interface SentTaskColumns extends RefColumns, KeyColumns {
  peer: string;
  task_id: string;
  state: string;
  question_n: number | null;
  question: string | null;
  answer_n: number | null;
  answer: string | null;
  at: string;
}

export const SENT_TASK_COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'sender',
  'handoff_id',
  'attempt',
  'peer',
  'task_id',
  'state',
  'question_n',
  'question',
  'answer_n',
  'answer',
  'at',
] as const satisfies readonly (keyof SentTaskColumns)[];

export const toSentTask = (row: SentTaskColumns): SentTask => ({
  key: toKey(row),
  ref: toRef(row),
  peer: row.peer,
  taskId: row.task_id,
  state: row.state,
  question:
    row.question_n === null || row.question === null ? null : { n: row.question_n, text: row.question },
  answer: row.answer_n === null || row.answer === null ? null : { n: row.answer_n, message: row.answer },
  at: row.at,
});

export const ofSentTask = (row: SentTask): SentTaskColumns => ({
  ...ofRef(row.ref),
  ...ofKey(row.key),
  peer: row.peer,
  task_id: row.taskId,
  state: row.state,
  question_n: row.question?.n ?? null,
  question: row.question?.text ?? null,
  answer_n: row.answer?.n ?? null,
  answer: row.answer?.message ?? null,
  at: row.at,
});
