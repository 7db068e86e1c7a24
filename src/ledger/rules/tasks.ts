import { type AcceptanceKey, HoldfastError } from '../../core/index.js';
import { TERMINAL_TASK_STATES } from '../../protocol/index.js';
import type { Principal } from '../../trust/index.js';
import type { TaskRow } from '../model.js';
import type { DecisionTask } from '../port.js';
import type { Rule } from './ruling.js';

/*
 * An A2A task moves through the protocol's states by compare-and-set on its version and is final once terminal.
 * The task of an offer is written with its decision and by nothing else. Tasks are no part of a case's audit chain.
 */

export const createTask: Rule<Omit<TaskRow, 'version'>, TaskRow> = (view, command) => {
  if (command.handoffId !== null || view.task(command.tenant, command.id) !== null) {
    throw new HoldfastError('task_conflict');
  }
  const row: TaskRow = { ...command, version: 1 };
  return { changes: [{ do: 'add_task', row }], audit: null, result: row };
};

export const saveTask: Rule<TaskRow, TaskRow> = (view, command) => {
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
  return { changes: [{ do: 'save_task', row }], audit: null, result: row };
};

/** The task of an offer, with its decision. */
export function taskOf(task: DecisionTask, key: AcceptanceKey, principal: Principal): TaskRow {
  return { ...task, tenant: key.tenant, peer: principal.agent, version: 1, handoffId: key.handoffId };
}

function isTerminal(state: string): boolean {
  return (TERMINAL_TASK_STATES as readonly string[]).includes(state);
}
