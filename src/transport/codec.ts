import { Message as SdkMessage, type Part as SdkPart, Task as SdkTask, TaskState } from '@a2a-js/sdk';
import type { Message, Part, Task } from '../protocol/index.js';

/** Between wire JSON, which the ledger keeps, and the SDK's form, which its adapters and executors use. */

const TERMINAL: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
]);

export function isTerminal(task: SdkTask): boolean {
  return task.status !== undefined && TERMINAL.has(task.status.state);
}

/** The SDK's codec takes `data: null` for no content at all. */
function restoreNullData(parts: SdkPart[], wire: readonly Part[] | undefined): void {
  for (const [index, part] of (wire ?? []).entries()) {
    const read = parts[index];
    if (read !== undefined && read.content === undefined && part.data === null) {
      read.content = { $case: 'data', value: null };
    }
  }
}

export function messageFromWire(wire: Message): SdkMessage {
  const message = SdkMessage.fromJSON(wire);
  restoreNullData(message.parts, wire.parts);
  return message;
}

export function taskFromWire(wire: Task): SdkTask {
  const task = SdkTask.fromJSON(wire);
  for (const [index, artifact] of task.artifacts.entries()) {
    restoreNullData(artifact.parts, wire.artifacts?.[index]?.parts);
  }
  task.history = (wire.history ?? []).map(messageFromWire);
  if (task.status !== undefined && wire.status.message !== undefined) {
    task.status.message = messageFromWire(wire.status.message);
  }
  return task;
}

export function taskToWire(task: SdkTask): Task {
  return SdkTask.toJSON(task) as Task;
}

/** Absent: all of the history; 0: none; n: the n latest. */
export function withHistoryLength(task: SdkTask, historyLength: number | undefined): SdkTask {
  if (historyLength === undefined) return task;
  return { ...task, history: historyLength === 0 ? [] : task.history.slice(-historyLength) };
}
