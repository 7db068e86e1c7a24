import { type CaseRef, isSameCase } from '../../core/index.js';
import {
  type CandidatePlan,
  type CaseRow,
  isOpen,
  type SentTask,
  type StoredOffer,
} from '../../ledger/index.js';
import type { CandidateQueries, ChangeHandlers } from '../engine.js';
import { attemptKey, refKey } from './keys.js';
import type { Table } from './tables.js';

export interface CandidateTables {
  readonly plans: Table<CandidatePlan>;
  readonly sentTasks: Table<SentTask>;
}

type CandidateChange = 'set_plan' | 'set_sent_task';

export function candidateHandlersOf({
  plans,
  sentTasks,
}: CandidateTables): Pick<ChangeHandlers, CandidateChange> {
  return {
    set_plan: ({ row }) => plans.put(row, ...refKey(row.ref)),
    set_sent_task: ({ row }) => sentTasks.put(row, ...attemptKey(row.key)),
  };
}

export function candidateQueriesOf(
  {
    plans,
    sentTasks,
    offers,
    cases,
  }: CandidateTables & {
    readonly offers: Table<StoredOffer>;
    readonly cases: Table<CaseRow>;
  },
  quarantined: (ref: CaseRef) => boolean,
): CandidateQueries {
  const isCurrent = (plan: CandidatePlan) => {
    const row = cases.get(...refKey(plan.ref));
    const later = offers.where(
      ({ ref, epoch, key }) =>
        isSameCase(ref, plan.ref) &&
        epoch === plan.epoch &&
        key.sender === plan.sender &&
        key.attempt > plan.attempt,
    );
    return (
      row?.status === 'open' && row.epoch === plan.epoch && row.owner === plan.sender && later.length === 0
    );
  };
  return {
    plan: (ref) => plans.get(...refKey(ref)),
    plans: (tenant, sender, limit) =>
      plans
        .where(
          (row) =>
            row.ref.tenant === tenant &&
            row.sender === sender &&
            row.state === 'active' &&
            !quarantined(row.ref),
        )
        .sort(byTime)
        .slice(0, limit),
    sentTask: (key) => sentTasks.get(...attemptKey(key)),
    sentTasksOf: (ref) => sentTasks.where((row) => isSameCase(row.ref, ref)),
    sentTasksBy: (tenant, sender, taskId) =>
      sentTasks.where(
        ({ key, taskId: id }) => key.tenant === tenant && key.sender === sender && id === taskId,
      ),
    openQuestions: (tenant, limit) =>
      sentTasks
        .where((row) => {
          const offer = offers.get(...attemptKey(row.key));
          const isAsked = row.question !== null && row.state === 'TASK_STATE_INPUT_REQUIRED';
          const isAnswered = row.answer !== null && row.answer.n === row.question?.n;
          return row.key.tenant === tenant && isAsked && !isAnswered && offer !== null && isOpen(offer);
        })
        .sort(byTime)
        .slice(0, limit),
    exhaustedPlans: (tenant, limit) =>
      plans
        .where((row) => row.ref.tenant === tenant && row.state === 'exhausted' && isCurrent(row))
        .sort(byTime)
        .slice(0, limit),
  };
}

function byTime(a: { readonly at: string }, b: { readonly at: string }): number {
  return a.at < b.at ? -1 : a.at > b.at ? 1 : 0;
}
