import type { DecisionRow } from '../../ledger/index.js';
import { type KeyColumns, ofKey, toKey } from './keys.js';

export interface DecisionColumns extends KeyColumns {
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

export const DECISION_COLUMNS = [
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
] as const satisfies readonly (keyof DecisionColumns)[];

export const toDecision = (row: DecisionColumns): DecisionRow => ({
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

export const ofDecision = (row: DecisionRow): DecisionColumns => ({
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
