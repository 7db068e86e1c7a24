import { type AcceptanceKey, HoldfastError, toUtc } from '../../core/index.js';
import { TERMINAL_TASK_STATES } from '../../protocol/index.js';
import type { Principal } from '../../trust/index.js';
import type { DecisionTask } from '../commands.js';
import type { TaskRow } from '../model.js';
import type { Announcement } from '../push.js';
import { changesOf } from './push.js';
import type { Change, LedgerView, Rule } from './ruling.js';

/*
 * An A2A task moves through the protocol's states by compare-and-set on its version and is final once terminal.
 * The task of an offer is written with its decision and by nothing else. Tasks are no part of a case's audit chain.
 */

export const createTask: Rule<Omit<TaskRow, 'version'> & Announcement, TaskRow> = (
  view,
  { event, push, ...command },
) => {
  if (command.handoffId !== null || view.task(command.tenant, command.id) !== null) {
    throw new HoldfastError('task_conflict');
  }
  const row: TaskRow = { ...command, version: 1 };
  const told = tell(view, row, { event, push });
  return { changes: [{ do: 'add_task', row }, ...told], audit: null, result: row };
};

export const saveTask: Rule<TaskRow & Announcement, TaskRow> = (view, { event, push, ...command }) => {
  const stored = view.task(command.tenant, command.id);
  const mine = stored !== null && stored.peer === command.peer && stored.handoffId === null;
  if (!mine || stored.version !== command.version || isTerminal(stored.state)) {
    throw new HoldfastError('task_conflict');
  }
  const row: TaskRow = {
    ...command,
    contextId: stored.contextId,
    handoffId: null,
    version: stored.version + 1,
  };
  const told = tell(view, row, { event, push });
  return { changes: [{ do: 'save_task', row }, ...told], audit: null, result: row };
};

/** The task of an offer, with its decision. */
export function taskOf(task: DecisionTask, key: AcceptanceKey, principal: Principal): TaskRow {
  return { ...task, tenant: key.tenant, peer: principal.agent, version: 1, handoffId: key.handoffId };
}

/** Whoever asked hears of it in the transaction of the change: the version of the task is the notification's place in its order. */
function tell(
  view: LedgerView,
  { tenant, id: taskId, version: seq }: TaskRow,
  { event, push }: { [N in keyof Announcement]-?: Announcement[N] | undefined },
): Change[] {
  const asked = push === undefined ? [] : changesOf(view, { tenant, taskId, push }).changes;
  if (event === undefined) return [...asked];
  return [...asked, { do: 'notify', tenant, taskId, pushId: null, seq, body: event, at: toUtc(view.now) }];
}

function isTerminal(state: string): boolean {
  return (TERMINAL_TASK_STATES as readonly string[]).includes(state);
}
