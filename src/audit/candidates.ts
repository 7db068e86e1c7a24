import { sha256Hex } from '../core/index.js';
import { type AuditEntry, type CandidatePlan, loggableId, type SentTask } from '../ledger/index.js';
import { attempt, attemptId, digest, needed, text, whole } from './entries.js';

/** The ordered candidates of a case, as its audit tells them. */
export interface ReplayedPlan {
  readonly sender: string;
  readonly epoch: number;
  readonly attempt: number;
  readonly candidates: unknown;
  readonly escalateTo: unknown;
  readonly state: unknown;
  readonly reason: unknown;
}

/** An offer that was not decided at once: questions and answers as digests. */
export interface ReplayedSentTask {
  readonly task: string;
  readonly state: string;
  readonly question: unknown;
  readonly answer: { readonly n: number; readonly digest: string } | null;
}

interface Draft {
  readonly sentTasks: Map<string, ReplayedSentTask>;
}

export function planOf(entry: AuditEntry): ReplayedPlan {
  const { candidates, escalateTo, state, reason } = needed(
    entry.data?.plan as Record<string, unknown> | undefined,
    entry,
  );
  const at = { epoch: needed(entry.epochBefore, entry), attempt: needed(entry.attempt, entry) };
  return { sender: entry.actor, ...at, candidates, escalateTo, state, reason };
}

export function progress({ sentTasks }: Draft, entry: AuditEntry): void {
  const before = sentTasks.get(attempt(entry));
  sentTasks.set(attempt(entry), {
    task: text(entry, 'task'),
    state: text(entry, 'state'),
    question: entry.data?.question ?? null,
    answer: entry.data?.answerDropped === true ? null : (before?.answer ?? null),
  });
}

export function answer({ sentTasks }: Draft, entry: AuditEntry): void {
  const before = needed(sentTasks.get(attempt(entry)), entry);
  sentTasks.set(attempt(entry), { ...before, answer: { n: whole(entry, 'n'), digest: digest(entry) } });
}

/** The ledger's rows, put as the audit puts them. */
export function storedPlan(plan: CandidatePlan | null): ReplayedPlan | null {
  if (plan === null) return null;
  const { sender, epoch, attempt: at, candidates, escalateTo, state, reason } = plan;
  return { sender, epoch, attempt: at, candidates, escalateTo, state, reason };
}

export function storedTasks(tasks: readonly SentTask[]): Map<string, ReplayedSentTask> {
  return new Map(
    tasks.map(({ key, taskId, state, question, answer: answered }) => [
      attemptId(key.sender, key.handoffId, key.attempt),
      {
        task: loggableId(taskId),
        state: loggableId(state),
        question: question === null ? null : { n: question.n, digest: sha256Hex(question.text) },
        answer: answered === null ? null : { n: answered.n, digest: sha256Hex(answered.message) },
      },
    ]),
  );
}
