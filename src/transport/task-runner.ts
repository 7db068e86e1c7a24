import { randomUUID } from 'node:crypto';
import { type SendMessageRequest, type Task, TaskState } from '@a2a-js/sdk';
import { RequestMalformedError, TaskNotFoundError, UnsupportedOperationError } from '@a2a-js/sdk/errors';
import { type AgentExecutor, RequestContext, type ServerCallContext } from '@a2a-js/sdk/server';
import { isHoldfastError, type Logger, toUtc } from '../core/index.js';
import type { NewPush } from '../ledger/index.js';
import type { Message as WireMessage } from '../protocol/index.js';
import type { Principal } from '../trust/index.js';
import type { Call } from './call.js';
import { isTerminal, messageFromWire } from './codec.js';
import type { EventChannel } from './event-channel.js';
import { agentText, statusResponse } from './task-events.js';
import { type RunEvent, TaskRun } from './task-run.js';
import type { LedgerTaskStore, StoredTask } from './task-store.js';
import { Turns } from './turns.js';

const MAX_REFERENCES = 100;

export interface TaskRunnerOptions {
  readonly tasks: LedgerTaskStore;
  readonly executor: AgentExecutor;
  readonly logger: Logger;
  /** How long a message to a task waits for an earlier one, milliseconds. */
  readonly turnWaitMs: number;
}

/** A task of this caller. @throws TaskNotFoundError for an unknown one and another peer's alike */
export async function requireTask(
  tasks: LedgerTaskStore,
  principal: Principal,
  id: unknown,
): Promise<StoredTask> {
  if (typeof id !== 'string' || id.trim() === '') throw new RequestMalformedError('A task id is required');
  const found = await tasks.find(principal, id);
  if (found === null) throw new TaskNotFoundError();
  return found;
}

function keyOf(principal: Principal, taskId: string): string {
  return JSON.stringify([principal.tenant, principal.agent, taskId]);
}

/** Plain messages: starts the executor on them, one execution per task at a time, and knows which tasks are being worked on. */
export class TaskRunner {
  readonly #options: TaskRunnerOptions;
  readonly #turns: Turns;
  readonly #runs = new Map<string, TaskRun>();

  constructor(options: TaskRunnerOptions) {
    this.#options = options;
    this.#turns = new Turns(options.turnWaitMs);
  }

  get busy(): boolean {
    return this.#runs.size > 0;
  }

  find(principal: Principal, taskId: string): TaskRun | undefined {
    return this.#runs.get(keyOf(principal, taskId));
  }

  /** @throws task_conflict where an earlier message to the task takes too long; push_limit */
  async start(
    wire: WireMessage,
    params: SendMessageRequest,
    context: ServerCallContext,
    { principal }: Call,
    push?: NewPush,
  ): Promise<{ run: TaskRun; events: EventChannel<RunEvent> }> {
    if (wire.taskId) await this.#continuable(principal, wire);
    const taskId = wire.taskId || randomUUID();
    const key = keyOf(principal, taskId);
    const release = await this.#turns.take(key);
    try {
      const { tasks, executor, logger } = this.#options;
      // Looked at again: the message before this one may have ended the task.
      const before = wire.taskId ? await this.#continuable(principal, wire) : null;
      const contextId = wire.contextId || before?.task.contextId || randomUUID();
      const message = { ...messageFromWire(wire), taskId, contextId };
      const stored =
        before === null
          ? null
          : await tasks.save(
              before,
              { ...before.task, history: [...before.task.history, message] },
              { push },
            );
      const request = new RequestContext(
        { ...params, message },
        taskId,
        contextId,
        context,
        stored === null ? undefined : structuredClone(stored.task),
        await this.#references(principal, wire),
      );
      const run = new TaskRun({ tasks, executor, logger, principal, context: request, stored, push });
      this.#runs.set(key, run);
      void run.done.then(() => {
        this.#runs.delete(key);
        release();
      });
      const events = run.subscribe();
      run.start();
      return { run, events };
    } catch (error) {
      release();
      throw error;
    }
  }

  async cancel(principal: Principal, found: StoredTask): Promise<void> {
    const { task } = found;
    const running = this.find(principal, task.id);
    if (running !== undefined) return running.cancel();
    const message = agentText(task.id, task.contextId, 'Canceled on request.');
    const status = { state: TaskState.TASK_STATE_CANCELED, message, timestamp: toUtc(new Date()) };
    try {
      await this.#options.tasks.save(found, { ...task, status }, { event: statusResponse(task, status) });
    } catch (error) {
      // Someone else was first; what the task is now tells whether it is canceled.
      if (!isHoldfastError(error) || error.code !== 'task_conflict') throw error;
    }
  }

  /** The task that a plain message goes on with. */
  async #continuable(principal: Principal, message: WireMessage): Promise<StoredTask> {
    const found = await requireTask(this.#options.tasks, principal, message.taskId);
    if (isTerminal(found.task) || found.row.handoffId !== null) {
      throw new UnsupportedOperationError('The task is in a terminal state.');
    }
    if (message.contextId && message.contextId !== found.task.contextId) {
      throw new RequestMalformedError('contextId is not that of the task');
    }
    return found;
  }

  async #references(principal: Principal, message: WireMessage): Promise<Task[]> {
    const ids = (message.referenceTaskIds ?? []).slice(0, MAX_REFERENCES);
    const found = await Promise.all(ids.map((id) => this.#options.tasks.find(principal, id)));
    return found.flatMap((one) => (one === null ? [] : [one.task]));
  }
}
