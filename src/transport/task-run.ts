import { type Message, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk';
import {
  type AgentExecutionEvent,
  type AgentExecutor,
  DefaultExecutionEventBus,
  type RequestContext,
} from '@a2a-js/sdk/server';
import { HoldfastError, isHoldfastError, type Logger } from '../core/index.js';
import type { NewPush } from '../ledger/index.js';
import type { Principal } from '../trust/index.js';
import { isTerminal } from './codec.js';
import { EventChannel } from './event-channel.js';
import { applyEvent, statusEvent, type Turn } from './task-events.js';
import type { LedgerTaskStore, StoredTask } from './task-store.js';

/** What an executor is given to stop in, milliseconds; then the task is canceled without its help. */
const CANCEL_LIMIT_MS = 2_000;
const MAX_CONFLICTS = 5;

/** An event as subscribers see it, with the task as it was stored with it. */
export interface RunEvent {
  readonly response: StreamResponse;
  readonly task: Task | null;
}

export interface RunOptions {
  readonly tasks: LedgerTaskStore;
  readonly executor: AgentExecutor;
  readonly logger: Logger;
  readonly principal: Principal;
  readonly context: RequestContext;
  readonly stored: StoredTask | null;
  /** Who wants to hear of a task that this run makes. */
  readonly push: NewPush | undefined;
}

/**
 * One execution of one task: the executor's events are applied one after another, each stored before anyone sees it.
 * Once the task is terminal, whoever ended it, later events are dropped. The run goes on when its client leaves.
 */
export class TaskRun {
  /** Settles when the executor has returned or the task is terminal, and everything is stored. */
  readonly done: Promise<void>;
  readonly #options: RunOptions;
  readonly #turn: Turn;
  readonly #bus = new DefaultExecutionEventBus();
  readonly #channels = new Set<EventChannel<RunEvent>>();
  #chain: Promise<void> = Promise.resolve();
  #stored: StoredTask | null;
  #answered = false;
  #over = false;
  #finish: () => void = () => undefined;

  constructor(options: RunOptions) {
    const { taskId, contextId, userMessage } = options.context;
    this.#options = options;
    this.#stored = options.stored;
    this.#turn = { taskId, contextId, message: userMessage };
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  start(): void {
    this.#bus.on('event', (event) => this.#enqueue(event));
    void this.#execute();
  }

  get task(): Task | null {
    return this.#stored?.task ?? null;
  }

  /** Events from now on. Closes with the run, or when the reader stops. */
  subscribe(): EventChannel<RunEvent> {
    const channel = new EventChannel<RunEvent>((ended) => this.#channels.delete(ended));
    if (this.#over) channel.close();
    else this.#channels.add(channel);
    return channel;
  }

  /** The answer to a unary send: at the first event, or once the task is terminal or waits for someone. */
  async answer(events: EventChannel<RunEvent>, firstWillDo: boolean): Promise<Message | Task> {
    for await (const { response, task } of events) {
      if (response.payload?.$case === 'message') return response.payload.value;
      if (task !== null && (firstWillDo || isTerminal(task) || isWaiting(task))) return task;
    }
    if (this.#stored === null) throw new HoldfastError('internal', 'A run ended without a task.');
    return this.#stored.task;
  }

  /** Ends the task as canceled, unless it becomes terminal in another way first. */
  async cancel(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CANCEL_LIMIT_MS);
    });
    const { executor, logger } = this.#options;
    const stopped = (async () => executor.cancelTask(this.#turn.taskId, this.#bus))().catch(
      (error: unknown) =>
        logger.warn({ taskId: this.#turn.taskId, err: error }, 'the executor failed to cancel'),
    );
    await Promise.race([stopped, limit]);
    clearTimeout(timer);
    await this.#chain;
    await this.#enqueue(statusEvent(this.#turn, TaskState.TASK_STATE_CANCELED, 'Canceled on request.'));
  }

  async #execute(): Promise<void> {
    const { executor, context, logger } = this.#options;
    let failure: string | null = null;
    try {
      await executor.execute(context, this.#bus);
    } catch (error) {
      // What went wrong is for the operator; the peer only learns that it did.
      logger.error({ taskId: this.#turn.taskId, err: error }, 'the executor failed');
      failure = 'The agent failed to handle this message.';
    }
    await this.#chain;
    if (failure === null && this.#stored === null && !this.#answered) failure = 'The agent gave no answer.';
    if (failure !== null) await this.#enqueue(statusEvent(this.#turn, TaskState.TASK_STATE_FAILED, failure));
    this.#end();
  }

  #enqueue(event: AgentExecutionEvent): Promise<void> {
    this.#chain = this.#chain
      .then(() => this.#apply(event))
      .catch((error: unknown) => {
        this.#options.logger.error({ taskId: this.#turn.taskId, err: error }, 'an event could not be stored');
        this.#end(error);
      });
    return this.#chain;
  }

  async #apply(event: AgentExecutionEvent): Promise<void> {
    if (this.#over) return;
    if (event.kind === 'message') {
      this.#answered = true;
      this.#emit({ payload: { $case: 'message', value: event.data } });
      return;
    }
    for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts += 1) {
      if (this.#stored !== null && isTerminal(this.#stored.task)) return this.#end();
      const next = applyEvent(this.#stored?.task ?? null, event, this.#turn);
      if (next === null) {
        this.#options.logger.warn({ taskId: this.#turn.taskId, kind: event.kind }, 'an event was ignored');
        return;
      }
      const response = toResponse(event, next);
      if (await this.#store(next, response)) {
        this.#emit(response);
        if (isTerminal(next)) this.#end();
        return;
      }
    }
    throw new HoldfastError('task_conflict');
  }

  /** False where another writer was first; its version is then the one to go on from. */
  async #store(next: Task, event: StreamResponse): Promise<boolean> {
    const { tasks, principal, push } = this.#options;
    try {
      this.#stored =
        this.#stored === null
          ? await tasks.create(principal, next, { event, push })
          : await tasks.save(this.#stored, next, { event });
      return true;
    } catch (error) {
      if (!isHoldfastError(error) || error.code !== 'task_conflict') throw error;
      this.#stored = await tasks.find(principal, this.#turn.taskId);
      return false;
    }
  }

  #emit(response: StreamResponse): void {
    for (const channel of this.#channels) channel.push({ response, task: this.task });
  }

  #end(error?: unknown): void {
    this.#over = true;
    for (const channel of [...this.#channels]) channel.close(error);
    this.#bus.removeAllListeners();
    this.#finish();
  }
}

/** Interrupted: the task goes on only when someone outside acts. */
function isWaiting(task: Task): boolean {
  const state = task.status?.state;
  return state === TaskState.TASK_STATE_INPUT_REQUIRED || state === TaskState.TASK_STATE_AUTH_REQUIRED;
}

function toResponse(event: Exclude<AgentExecutionEvent, { kind: 'message' }>, task: Task): StreamResponse {
  switch (event.kind) {
    case 'task':
      return { payload: { $case: 'task', value: task } };
    case 'statusUpdate':
      return {
        payload: {
          $case: 'statusUpdate',
          value: { ...event.data, contextId: task.contextId, status: task.status },
        },
      };
    case 'artifactUpdate':
      return { payload: { $case: 'artifactUpdate', value: { ...event.data, contextId: task.contextId } } };
  }
}
