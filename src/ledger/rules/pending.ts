import { type AcceptanceKey, HoldfastError, sha256Hex, toUtc } from '../../core/index.js';
import { type Message, REJECTION_MEDIA_TYPE, type Task } from '../../protocol/index.js';
import type { Principal } from '../../trust/index.js';
import type { DecisionTask } from '../commands.js';
import type { AuditFact, TaskRow } from '../model.js';
import type {
  AnswerCommand,
  AnswerResult,
  Clarification,
  DeferCommand,
  DeferResult,
  PendingClaim,
  PendingOffer,
} from '../pending.js';
import { alreadyDecided, checkKey } from './deliveries.js';
import { attemptOf } from './facts.js';
import type { Change, LedgerView, Rule, Ruling } from './ruling.js';
import { taskOf } from './tasks.js';

/*
 * An offer that is not decided at once stands with its task; owner and epoch are as they were.
 *   (none)   -> deciding | asked | waiting   stored, with the task that its sender follows
 *   deciding -> asked      the check asks its sender; the task says what (INPUT_REQUIRED)
 *   deciding -> waiting    somebody has to decide
 *   asked    -> deciding   the answer is there
 *   any      -> decided    with the decision, whichever that is, in its transaction: it ends the task too
 * Only the decision changes anything about the case, and it goes through every check as if the offer had never been stored.
 */

function isUndecided(pending: PendingOffer | null): pending is PendingOffer {
  return pending !== null && pending.state !== 'decided';
}

export const deferOffer: Rule<DeferCommand, DeferResult> = (view, command) => {
  checkKey(command);
  const before = alreadyDecided(view, command);
  if (before !== null) return before;
  const { key, state, question, holder } = command;
  if ((state === 'asked') !== (question !== undefined)) {
    throw new HoldfastError('usage', 'An offer is asked about with a question, and with none otherwise.');
  }
  const found = view.pending(key);
  const row = found === null ? received(view, command) : found;
  const goesOn = found === null || (found.state === 'deciding' && state !== 'deciding');
  const asksNext = question === undefined || question.n === row.clarifications.length + 1;
  if (!goesOn || !asksNext || row.taskId !== command.task.id) {
    return { changes: [], audit: null, result: { outcome: 'stands', pending: row } };
  }
  const pending: PendingOffer = {
    ...row,
    state,
    clarifications: question === undefined ? row.clarifications : [...row.clarifications, opened(question)],
    holder: state === 'deciding' && holder !== undefined && view.alive(holder) ? holder : null,
    rev: found === null ? 1 : row.rev + 1,
  };
  const changes =
    found === null ? stored(command, pending) : moved(view, pending, JSON.parse(command.task.task));
  const facts = [
    ...(found === null ? [factOf(pending, 'offer_received', { ...particularsOf(command) })] : []),
    ...(question === undefined
      ? []
      : [factOf(pending, 'question_asked', { n: question.n, question: sha256Hex(question.question) })]),
    ...(state === 'waiting' ? [factOf(pending, 'decision_awaited', {})] : []),
  ];
  return { changes, audit: { ref: row.ref, facts }, result: { outcome: 'stored', pending } };
};

/** Whoever sends the same again changes nothing; a second answer to one question is none. */
export const answerOffer: Rule<AnswerCommand, AnswerResult> = (view, command) => {
  checkKey(command);
  const { key, n, digest, holder } = command;
  const found = view.pending(key);
  const said = (outcome: Exclude<AnswerResult['outcome'], 'stored'>): Ruling<AnswerResult> => ({
    changes: [],
    audit: null,
    result: { outcome, pending: found },
  });
  const asked = found?.clarifications.find((one) => one.n === n);
  if (found === null || asked === undefined) return said('unasked');
  if (asked.digest !== null) return said(asked.digest === digest ? 'same' : 'conflict');
  if (found.state !== 'asked') return said('unasked');
  if (view.now.getTime() > Date.parse(found.acceptBy)) return said('expired');
  const answered: Clarification = { ...asked, answer: command.answer, digest };
  const pending: PendingOffer = {
    ...found,
    state: 'deciding',
    clarifications: found.clarifications.map((one) => (one.n === n ? answered : one)),
    holder: holder !== undefined && view.alive(holder) ? holder : null,
    rev: found.rev + 1,
  };
  const task: Task = JSON.parse(taskRow(view, pending).task);
  const status = { state: 'TASK_STATE_WORKING' as const, timestamp: toUtc(view.now) };
  const heard: Message = JSON.parse(command.message);
  const { loggable, principal } = command;
  const data = { n, tokenId: principal.tokenId, loggable };
  const fact = { ...factOf(pending, 'question_answered', data), actor: key.sender, digest };
  return {
    changes: moved(view, pending, { ...task, status }, [heard]),
    audit: { ref: found.ref, facts: [fact] },
    result: { outcome: 'stored', pending },
  };
};

export const claimPending: Rule<PendingClaim, PendingOffer[]> = (view, command) => {
  const { tenant, agent, holder, key } = command;
  const own = key === undefined || key.tenant === tenant;
  const free = own && view.alive(holder) ? view.freePending(command) : [];
  const rows = free
    .filter(({ toAgent }) => toAgent === agent)
    .map((row) => ({ ...row, holder, rev: row.rev + 1 }));
  return { changes: rows.map((row) => ({ do: 'set_pending', row })), audit: null, result: rows };
};

/** The task of a decision: that of the offer where it was stored undecided, which ends with it, or else a new one. */
export function concluded(
  view: LedgerView,
  key: AcceptanceKey,
  task: DecisionTask,
  principal: Principal,
): { readonly taskId: string; readonly changes: readonly Change[] } {
  const pending = view.pending(key);
  if (!isUndecided(pending)) {
    return { taskId: task.id, changes: [{ do: 'add_task', row: taskOf(task, key, principal) }] };
  }
  const { status, artifacts } = JSON.parse(task.task) as Task;
  return {
    taskId: pending.taskId,
    changes: ended(view, pending, { status, ...(artifacts && { artifacts }) }),
  };
}

/** What a tombstone does to an offer that was stored undecided; nothing where none was. */
export function canceled(
  view: LedgerView,
  key: AcceptanceKey,
  answer: string,
  state: 'TASK_STATE_CANCELED' | 'TASK_STATE_REJECTED' = 'TASK_STATE_CANCELED',
): { readonly taskId: string | null; readonly changes: readonly Change[] } {
  const pending = view.pending(key);
  if (!isUndecided(pending)) return { taskId: null, changes: [] };
  const part = { data: JSON.parse(answer), mediaType: REJECTION_MEDIA_TYPE };
  const artifacts = [{ artifactId: 'rejection', name: 'Handoff rejection', parts: [part] }];
  const status = { state, timestamp: toUtc(view.now) };
  return { taskId: pending.taskId, changes: ended(view, pending, { status, artifacts }) };
}

function ended(view: LedgerView, pending: PendingOffer, end: Pick<Task, 'status' | 'artifacts'>): Change[] {
  const task: Task = JSON.parse(taskRow(view, pending).task);
  const row: PendingOffer = {
    ...pending,
    state: 'decided',
    message: null,
    holder: null,
    rev: pending.rev + 1,
  };
  return moved(view, row, { ...task, ...end });
}

function received(view: LedgerView, command: DeferCommand): PendingOffer {
  const { key, ref, kind, toAgent, contract, digest, message, acceptBy, principal, task } = command;
  const until = Date.parse(acceptBy);
  if (Number.isNaN(until)) throw new HoldfastError('usage', 'accept_by is a UTC time.');
  return {
    ...{ key, ref, kind, toAgent, contract, digest, message },
    tokenId: principal.tokenId,
    taskId: task.id,
    // As everything that is compared as text.
    acceptBy: toUtc(new Date(until)),
    state: 'deciding',
    clarifications: [],
    receivedAt: toUtc(view.now),
    holder: null,
    rev: 1,
  };
}

function stored({ key, task, principal }: DeferCommand, row: PendingOffer): Change[] {
  return [
    { do: 'add_task', row: taskOf(task, key, principal) },
    { do: 'add_pending', row },
  ];
}

/** The task as it is now, in its next version; what its status said before goes to its history. */
function moved(view: LedgerView, row: PendingOffer, to: Task, heard: readonly Message[] = []): Change[] {
  const before = taskRow(view, row);
  // Whether it is being checked or waits for somebody, its sender need not know.
  if (to.status.state === before.state) return [{ do: 'set_pending', row }];
  const { status, history = [] }: Task = JSON.parse(before.task);
  const said = status.message === undefined ? [] : [status.message];
  const past = [...history, ...said, ...heard];
  const { contextId } = before;
  const { message } = to.status;
  const task: Task = {
    ...to,
    id: before.id,
    contextId,
    status: message === undefined ? to.status : { ...to.status, message: { ...message, contextId } },
    ...(past.length === 0 ? {} : { history: past }),
  };
  const saved: TaskRow = {
    ...before,
    state: task.status.state,
    statusAt: task.status.timestamp,
    version: before.version + 1,
    task: JSON.stringify(task),
  };
  const { id: taskId } = task;
  const news =
    row.state === 'decided' ? { task } : { statusUpdate: { taskId, contextId, status: task.status } };
  return [{ do: 'save_offer_task', row: saved }, { do: 'set_pending', row }, told(view, saved, news)];
}

/** Whoever asked hears of it in the transaction of the change. */
function told(view: LedgerView, { tenant, id, version }: TaskRow, event: object): Change {
  const body = JSON.stringify(event);
  return { do: 'notify', tenant, taskId: id, pushId: null, seq: version, body, at: toUtc(view.now) };
}

function taskRow(view: LedgerView, { key, taskId }: PendingOffer): TaskRow {
  const row = view.task(key.tenant, taskId);
  if (row === null) throw new HoldfastError('internal', 'A stored offer has no task.');
  return row;
}

function opened({ n, question }: Pick<Clarification, 'n' | 'question'>): Clarification {
  return { n, question, answer: null, digest: null };
}

function particularsOf({ contract, acceptBy, task, principal }: DeferCommand) {
  return { contract, acceptBy, taskId: task.id, tokenId: principal.tokenId };
}

/** The receiver acts; the attempt is its sender's. */
function factOf(row: PendingOffer, type: AuditFact['type'], data: AuditFact['data']): AuditFact {
  const { key, toAgent, digest } = row;
  return {
    type,
    actor: toAgent,
    ...attemptOf(key),
    rule: 'H4',
    digest,
    data: { sender: key.sender, ...data },
  };
}
