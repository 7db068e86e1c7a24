import { randomUUID } from 'node:crypto';
import type {
  AgentCard,
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
} from '@a2a-js/sdk';
import { TaskState } from '@a2a-js/sdk';
import {
  A2AError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';
import {
  type A2ARequestHandler,
  type AgentExecutor,
  RequestContext,
  type ServerCallContext,
} from '@a2a-js/sdk/server';
import { HoldfastError, isHoldfastError } from '../core/index.js';
import type { OfferReceiver } from '../handoff/index.js';
import { classifyMessage, type Message as WireMessage } from '../protocol/index.js';
import type { Principal } from '../trust/index.js';
import { type Call, callOf } from './call.js';
import { isTerminal, messageFromWire, taskFromWire, withHistoryLength } from './codec.js';
import type { EventChannel } from './event-channel.js';
import type { Logger } from './logger.js';
import { listTasks, wholeNumber } from './task-list.js';
import { type RunEvent, TaskRun } from './task-run.js';
import type { LedgerTaskStore, StoredTask } from './task-store.js';
import { Turns } from './turns.js';

export interface RequestHandlerOptions {
  readonly card: AgentCard;
  readonly tasks: LedgerTaskStore;
  readonly receiver: OfferReceiver;
  readonly executor: AgentExecutor;
  readonly logger: Logger;
  readonly vendor: string;
  /** How long a message to a task waits for an earlier one, milliseconds. */
  readonly turnWaitMs: number;
}

/**
 * A2A's operations on the ledger. Offers go to the receiver, plain messages to the executor; what is not the caller's
 * looks the same as what does not exist. Every error is kept on the call for the binding, which alone decides how it looks.
 */
export class LedgerRequestHandler implements A2ARequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #turns: Turns;
  readonly #runs = new Map<string, TaskRun>();

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
    this.#turns = new Turns(options.turnWaitMs);
  }

  async getAgentCard(): Promise<AgentCard> {
    return this.#options.card;
  }

  sendMessage(params: SendMessageRequest, context: ServerCallContext): Promise<Message | Task> {
    return recorded(context, async (call) => {
      const historyLength = checkConfiguration(params);
      const decided = await this.#decide(call);
      if (decided !== null) return withHistoryLength(decided, historyLength);
      const { run, events } = await this.#startRun(params, context, call);
      const answer = await run.answer(events, params.configuration?.returnImmediately === true);
      return 'messageId' in answer ? answer : withHistoryLength(answer, historyLength);
    });
  }

  sendMessageStream(
    params: SendMessageRequest,
    context: ServerCallContext,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    return recordedStream(context, (call) => this.#stream(params, context, call));
  }

  getTask(params: GetTaskRequest, context: ServerCallContext): Promise<Task> {
    return recorded(context, async ({ principal }) => {
      const historyLength = wholeNumber('historyLength', params.historyLength, 0);
      const { task } = await this.#find(principal, params.id);
      return withHistoryLength(task, historyLength);
    });
  }

  listTasks(params: ListTasksRequest, context: ServerCallContext): Promise<ListTasksResponse> {
    return recorded(context, ({ principal }) => listTasks(this.#options.tasks, params, principal));
  }

  cancelTask(params: CancelTaskRequest, context: ServerCallContext): Promise<Task> {
    return recorded(context, async ({ principal }) => {
      const found = await this.#find(principal, params.id);
      if (!isTerminal(found.task)) await this.#cancel(principal, found);
      const { task } = await this.#find(principal, params.id);
      if (task.status?.state !== TaskState.TASK_STATE_CANCELED) throw new TaskNotCancelableError();
      return task;
    });
  }

  resubscribe(
    params: SubscribeToTaskRequest,
    context: ServerCallContext,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    return recordedStream(context, (call) => this.#subscribe(params, call));
  }

  getAuthenticatedExtendedAgentCard(_params: unknown, context: ServerCallContext): Promise<AgentCard> {
    return recorded(context, async () => {
      throw new UnsupportedOperationError('This agent has no extended card.');
    });
  }

  createTaskPushNotificationConfig(_params: unknown, context: ServerCallContext): Promise<never> {
    return noPush(context);
  }

  getTaskPushNotificationConfig(_params: unknown, context: ServerCallContext): Promise<never> {
    return noPush(context);
  }

  listTaskPushNotificationConfigs(_params: unknown, context: ServerCallContext): Promise<never> {
    return noPush(context);
  }

  deleteTaskPushNotificationConfig(_params: unknown, context: ServerCallContext): Promise<never> {
    return noPush(context);
  }

  /** The task of an offer; `null` where the message is a plain one. */
  async #decide(call: Call): Promise<Task | null> {
    const message = messageOf(call);
    const { kind } = classifyMessage(message, this.#options.vendor);
    if (kind === 'plain') return null;
    if (kind === 'control') throw new UnsupportedOperationError('This agent takes no control messages.');
    if (message.taskId) {
      await this.#find(call.principal, message.taskId);
      throw new UnsupportedOperationError('An offer starts a task of its own.');
    }
    if (message.contextId) {
      throw new HoldfastError('message_invalid', undefined, {
        fields: [
          { path: 'message.contextId', problem: 'is given by the receiver of an offer, not by its sender' },
        ],
      });
    }
    return taskFromWire(await this.#options.receiver.receive(message, call.principal));
  }

  async *#stream(
    params: SendMessageRequest,
    context: ServerCallContext,
    call: Call,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const historyLength = checkConfiguration(params);
    const decided = await this.#decide(call);
    if (decided !== null) {
      yield { payload: { $case: 'task', value: withHistoryLength(decided, historyLength) } };
      return;
    }
    const { events } = await this.#startRun(params, context, call);
    let first = true;
    for await (const { response, task } of whileHeard(events, call.signal)) {
      // A stream begins with its task, whatever the executor began with.
      const payload = response.payload;
      if (task !== null && (payload?.$case === 'task' || (first && payload?.$case !== 'message'))) {
        yield { payload: { $case: 'task', value: withHistoryLength(task, historyLength) } };
      } else {
        yield response;
      }
      first = false;
      if (task?.status?.state === TaskState.TASK_STATE_INPUT_REQUIRED) return;
    }
  }

  async *#subscribe(
    params: SubscribeToTaskRequest,
    call: Call,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const found = await this.#find(call.principal, params.id);
    // From here on without a wait: nothing can happen between the snapshot and the subscription.
    const run = this.#runs.get(keyOf(call.principal, params.id));
    const task = run?.task ?? found.task;
    if (isTerminal(task)) throw new UnsupportedOperationError('The task is in a terminal state.');
    const events = run?.subscribe();
    try {
      yield { payload: { $case: 'task', value: task } };
      if (events === undefined) return;
      for await (const { response } of whileHeard(events, call.signal)) {
        if (response.payload?.$case !== 'message') yield response;
      }
    } finally {
      events?.close();
    }
  }

  async #startRun(
    params: SendMessageRequest,
    context: ServerCallContext,
    call: Call,
  ): Promise<{ run: TaskRun; events: EventChannel<RunEvent> }> {
    const { principal } = call;
    const wire = messageOf(call);
    if (wire.taskId) await this.#continuable(principal, wire);
    const taskId = wire.taskId || randomUUID();
    const key = keyOf(principal, taskId);
    const release = await this.#turns.take(key);
    try {
      const before = wire.taskId ? await this.#continuable(principal, wire) : null;
      const contextId = wire.contextId || before?.task.contextId || randomUUID();
      const message = { ...messageFromWire(wire), taskId, contextId };
      const stored =
        before === null
          ? null
          : await this.#options.tasks.save(before, {
              ...before.task,
              history: [...before.task.history, message],
            });
      const references = await this.#references(principal, wire);
      const request = new RequestContext(
        { ...params, message },
        taskId,
        contextId,
        context,
        stored === null ? undefined : structuredClone(stored.task),
        references,
      );
      const { tasks, executor, logger } = this.#options;
      const run = new TaskRun({ tasks, executor, logger, principal, context: request, stored });
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

  /** The task that a plain message goes on with. */
  async #continuable(principal: Principal, message: WireMessage): Promise<StoredTask> {
    const found = await this.#find(principal, message.taskId ?? '');
    if (isTerminal(found.task) || found.row.handoffId !== null) {
      throw new UnsupportedOperationError('The task is in a terminal state.');
    }
    if (message.contextId && message.contextId !== found.task.contextId) {
      throw new RequestMalformedError('contextId is not that of the task');
    }
    return found;
  }

  async #references(principal: Principal, message: WireMessage): Promise<Task[]> {
    const ids = message.referenceTaskIds ?? [];
    const found = await Promise.all(ids.slice(0, 100).map((id) => this.#options.tasks.find(principal, id)));
    return found.flatMap((one) => (one === null ? [] : [one.task]));
  }

  async #cancel(principal: Principal, found: StoredTask): Promise<void> {
    if (found.row.handoffId !== null) throw new TaskNotCancelableError();
    const running = this.#runs.get(keyOf(principal, found.task.id));
    if (running !== undefined) return running.cancel();
    const status = {
      state: TaskState.TASK_STATE_CANCELED,
      message: undefined,
      timestamp: new Date().toISOString(),
    };
    try {
      await this.#options.tasks.save(found, { ...found.task, status });
    } catch (error) {
      // Someone else was first; what the task is now tells whether it is canceled.
      if (!isHoldfastError(error) || error.code !== 'task_conflict') throw error;
    }
  }

  async #find(principal: Principal, id: string): Promise<StoredTask> {
    if (typeof id !== 'string' || id.trim() === '') throw new RequestMalformedError('A task id is required');
    const found = await this.#options.tasks.find(principal, id);
    if (found === null) throw new TaskNotFoundError();
    return found;
  }
}

function keyOf(principal: Principal, taskId: string): string {
  return JSON.stringify([principal.tenant, principal.agent, taskId]);
}

function messageOf(call: Call): WireMessage {
  if (call.message === null) throw new RequestMalformedError('message is required');
  return call.message;
}

/** What is asked for besides the message, refused before anything is decided where it cannot be done. */
function checkConfiguration({ configuration }: SendMessageRequest): number | undefined {
  if (configuration?.taskPushNotificationConfig !== undefined) throw new PushNotificationNotSupportedError();
  return wholeNumber('historyLength', configuration?.historyLength, 0);
}

/** The events for as long as the client is there. */
async function* whileHeard(
  events: EventChannel<RunEvent>,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void, undefined> {
  const leave = () => events.close();
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  try {
    yield* events;
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

/** What the SDK's code is given in place of an error that is not the protocol's: it would show any text to the peer. */
function neutral(error: unknown): A2AError {
  return error instanceof A2AError ? error : new A2AError('The request failed.');
}

async function recorded<T>(context: ServerCallContext, work: (call: Call) => Promise<T>): Promise<T> {
  const call = callOf(context);
  try {
    return await work(call);
  } catch (error) {
    call.error = error;
    throw neutral(error);
  }
}

async function* recordedStream<T>(
  context: ServerCallContext,
  work: (call: Call) => AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  const call = callOf(context);
  try {
    yield* work(call);
  } catch (error) {
    call.error = error;
    throw neutral(error);
  }
}

function noPush(context: ServerCallContext): Promise<never> {
  return recorded(context, async () => {
    throw new PushNotificationNotSupportedError();
  });
}
