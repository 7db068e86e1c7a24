import type {
  AgentCard,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import { TaskState } from '@a2a-js/sdk';
import { RequestMalformedError, TaskNotCancelableError, UnsupportedOperationError } from '@a2a-js/sdk/errors';
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server';
import { HoldfastError } from '../core/index.js';
import type { ControlReceiver, OfferReceiver } from '../handoff/index.js';
import type { NewPush } from '../ledger/index.js';
import { classifyMessage, type Message as WireMessage } from '../protocol/index.js';
import type { Call } from './call.js';
import { isTerminal, messageFromWire, taskFromWire, withHistoryLength } from './codec.js';
import { whileHeard } from './event-channel.js';
import { PushOperations, type PushOperationsOptions } from './push-operations.js';
import { recorded, recordedStream } from './recorded.js';
import { statusResponse } from './task-events.js';
import { listTasks, wholeNumber } from './task-list.js';
import { requireTask, TaskRunner, type TaskRunnerOptions } from './task-runner.js';

/** Another process may decide an offer: its task is looked at again after that, milliseconds. */
const FOLLOW_MS = 500;

export interface RequestHandlerOptions extends TaskRunnerOptions, PushOperationsOptions {
  readonly card: AgentCard;
  readonly receiver: OfferReceiver;
  readonly control: ControlReceiver;
  readonly vendor: string;
}

/**
 * A2A's operations on the ledger. Offers go to the receiver, plain messages to the executor; what is not the caller's
 * looks the same as what does not exist. Every error is kept on the call for the binding, which alone decides how it looks.
 */
export class LedgerRequestHandler implements A2ARequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #runner: TaskRunner;
  readonly #pushes: PushOperations;

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
    this.#runner = new TaskRunner(options);
    this.#pushes = new PushOperations(options);
  }

  /** Whether an execution is under way. */
  get busy(): boolean {
    return this.#runner.busy;
  }

  async getAgentCard(): Promise<AgentCard> {
    return this.#options.card;
  }

  sendMessage(params: SendMessageRequest, context: ServerCallContext): Promise<Message | Task> {
    return recorded(context, async (call) => {
      const { historyLength, push } = await this.#configuration(params);
      const message = messageOf(call);
      const returnImmediately = params.configuration?.returnImmediately === true;
      const answered = await this.#answer(message, call, { push, returnImmediately });
      if (answered !== null) return trimmed(answered, historyLength);
      const { run, events } = await this.#runner.start(message, params, context, call, push);
      const answer = await run.answer(events, returnImmediately);
      return trimmed(answer, historyLength);
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
      const { task } = await requireTask(this.#options.tasks, principal, params.id);
      return withHistoryLength(task, historyLength);
    });
  }

  listTasks(params: ListTasksRequest, context: ServerCallContext): Promise<ListTasksResponse> {
    return recorded(context, ({ principal }) => listTasks(this.#options.tasks, params, principal));
  }

  cancelTask(params: CancelTaskRequest, context: ServerCallContext): Promise<Task> {
    return recorded(context, async ({ principal }) => {
      const found = await requireTask(this.#options.tasks, principal, params.id);
      if (found.row.handoffId !== null) await this.#options.control.withdrawTask(params.id, principal);
      else if (!isTerminal(found.task)) await this.#runner.cancel(principal, found);
      const { task } = await requireTask(this.#options.tasks, principal, params.id);
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

  createTaskPushNotificationConfig(
    params: TaskPushNotificationConfig,
    context: ServerCallContext,
  ): Promise<TaskPushNotificationConfig> {
    return recorded(context, ({ principal }) => this.#pushes.create(params, principal));
  }

  getTaskPushNotificationConfig(
    params: GetTaskPushNotificationConfigRequest,
    context: ServerCallContext,
  ): Promise<TaskPushNotificationConfig> {
    return recorded(context, ({ principal }) => this.#pushes.get(params, principal));
  }

  listTaskPushNotificationConfigs(
    params: ListTaskPushNotificationConfigsRequest,
    context: ServerCallContext,
  ): Promise<ListTaskPushNotificationConfigsResponse> {
    return recorded(context, ({ principal }) => this.#pushes.list(params, principal));
  }

  deleteTaskPushNotificationConfig(
    params: DeleteTaskPushNotificationConfigRequest,
    context: ServerCallContext,
  ): Promise<void> {
    return recorded(context, ({ principal }) => this.#pushes.delete(params, principal));
  }

  /** What is asked for besides the message, refused before anything is decided where it cannot be done. */
  async #configuration({ configuration }: SendMessageRequest) {
    const historyLength = wholeNumber('historyLength', configuration?.historyLength, 0);
    return { historyLength, push: await this.#pushes.read(configuration?.taskPushNotificationConfig) };
  }

  /** The task of an offer, or the message that answers a control message; `null` where the message is a plain one. */
  async #answer(
    message: WireMessage,
    call: Call,
    { push, returnImmediately }: { push: NewPush | undefined; returnImmediately: boolean },
  ): Promise<Message | Task | null> {
    const { kind } = classifyMessage(message, this.#options.vendor);
    if (kind === 'plain') return null;
    if (kind === 'answer') await requireTask(this.#options.tasks, call.principal, message.taskId);
    else if (message.taskId) {
      await requireTask(this.#options.tasks, call.principal, message.taskId);
      throw new UnsupportedOperationError('The message belongs to no task that was there before.');
    }
    if (message.contextId && kind !== 'answer') {
      throw new HoldfastError('message_invalid', undefined, {
        fields: [{ path: 'message.contextId', problem: 'is given by the receiver, not by the sender' }],
      });
    }
    if (kind === 'control') {
      if (push !== undefined) {
        const path = 'configuration.taskPushNotificationConfig';
        throw new HoldfastError('message_invalid', undefined, {
          fields: [{ path, problem: 'has no place beside a control message, which makes no task' }],
        });
      }
      return messageFromWire(await this.#options.control.answer(message, call.principal));
    }
    const { receiver } = this.#options;
    const take = kind === 'answer' ? receiver.answer : receiver.receive;
    const task = taskFromWire(await take(message, call.principal, { returnImmediately }));
    if (push !== undefined) await this.#pushes.addToOffer(push, task, call.principal);
    return task;
  }

  async *#stream(
    params: SendMessageRequest,
    context: ServerCallContext,
    call: Call,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const { historyLength, push } = await this.#configuration(params);
    const message = messageOf(call);
    const answered = await this.#answer(message, call, { push, returnImmediately: true });
    if (answered !== null) {
      if ('messageId' in answered) yield { payload: payloadOf(answered) };
      else yield* this.#follow(answered, call, { historyLength, untilAsked: true });
      return;
    }
    const { events } = await this.#runner.start(message, params, context, call, push);
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

  /** The task of an offer, and what becomes of it, whichever process decides it. */
  async *#follow(
    from: Task,
    { principal, signal }: Call,
    { historyLength, untilAsked }: { historyLength: number | undefined; untilAsked: boolean },
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const { tasks, receiver } = this.#options;
    yield { payload: { $case: 'task', value: withHistoryLength(from, historyLength) } };
    let known = from;
    const isOver = () =>
      isTerminal(known) || (untilAsked && known.status?.state === TaskState.TASK_STATE_INPUT_REQUIRED);
    while (!isOver() && !signal.aborted) {
      const { task } = await requireTask(tasks, principal, from.id);
      if (isChanged(known, task)) yield* eventsBetween(known, task);
      known = task;
      if (!isOver()) await receiver.untilChanged(from.id, FOLLOW_MS);
    }
  }

  async *#subscribe(
    params: SubscribeToTaskRequest,
    call: Call,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const found = await requireTask(this.#options.tasks, call.principal, params.id);
    // From here on without a wait: nothing can happen between the snapshot and the subscription.
    const run = this.#runner.find(call.principal, params.id);
    const task = run?.task ?? found.task;
    if (isTerminal(task)) throw new UnsupportedOperationError('The task is in a terminal state.');
    if (found.row.handoffId !== null) {
      yield* this.#follow(found.task, call, { historyLength: undefined, untilAsked: false });
      return;
    }
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
}

function isChanged({ status: before }: Task, { status: after }: Task): boolean {
  return (
    before?.state !== after?.state ||
    before?.timestamp !== after?.timestamp ||
    before?.message?.messageId !== after?.message?.messageId
  );
}

/** The events that lead from one state of a task to a later one. */
function* eventsBetween(before: Task, after: Task): Generator<StreamResponse, void, undefined> {
  const { id: taskId, contextId, status } = after;
  const known = new Set(before.artifacts.map(({ artifactId }) => artifactId));
  for (const artifact of after.artifacts.filter(({ artifactId }) => !known.has(artifactId))) {
    const whole = { append: false, lastChunk: true, metadata: undefined };
    yield { payload: { $case: 'artifactUpdate', value: { taskId, contextId, artifact, ...whole } } };
  }
  if (status !== undefined) yield statusResponse(after, status);
}

function trimmed(answer: Message | Task, historyLength: number | undefined): Message | Task {
  return 'messageId' in answer ? answer : withHistoryLength(answer, historyLength);
}

function payloadOf(answer: Message | Task): StreamResponse['payload'] {
  return 'messageId' in answer ? { $case: 'message', value: answer } : { $case: 'task', value: answer };
}

function messageOf(call: Call): WireMessage {
  if (call.message === null) throw new RequestMalformedError('message is required');
  return call.message;
}
