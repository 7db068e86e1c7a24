import { type Message, Role, type Task, TaskState } from '@a2a-js/sdk';
import { AgentEvent } from '@a2a-js/sdk/server';
import type { AgentExecutor, ExecutionEventBus, RequestContext } from '../../src/transport/index.js';

/** What a scripted executor does with one message. */
export type Script = (turn: Turn) => Promise<void> | void;

/** A small language for scripts: what agents publish, without the SDK's ceremony. */
class Turn {
  constructor(
    readonly context: RequestContext,
    readonly bus: ExecutionEventBus,
  ) {}

  get text(): string {
    const content = this.context.userMessage.parts[0]?.content;
    return content?.$case === 'text' ? content.value : '';
  }

  task(state = TaskState.TASK_STATE_WORKING): void {
    this.bus.publish(AgentEvent.task(this.#task(state)));
  }

  status(state: TaskState, text?: string): void {
    const { taskId, contextId } = this.context;
    const message = text === undefined ? undefined : this.#message(text);
    const status = { state, message, timestamp: new Date().toISOString() };
    this.bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: undefined }));
  }

  artifact(artifactId: string, text: string, append = false): void {
    const { taskId, contextId } = this.context;
    const artifact = {
      artifactId,
      name: '',
      description: '',
      parts: [textPart(text)],
      metadata: undefined,
      extensions: [],
    };
    const update = { taskId, contextId, artifact, append, lastChunk: true, metadata: undefined };
    this.bus.publish(AgentEvent.artifactUpdate(update));
  }

  message(text: string): void {
    this.bus.publish(AgentEvent.message(this.#message(text)));
  }

  #task(state: TaskState): Task {
    const { taskId: id, contextId, userMessage } = this.context;
    const status = { state, message: undefined, timestamp: new Date().toISOString() };
    return { id, contextId, status, artifacts: [], history: [userMessage], metadata: undefined };
  }

  #message(text: string): Message {
    return {
      messageId: crypto.randomUUID(),
      role: Role.ROLE_AGENT,
      taskId: this.context.taskId,
      contextId: this.context.contextId,
      parts: [textPart(text)],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    };
  }
}

function textPart(value: string) {
  return {
    content: { $case: 'text', value } as const,
    metadata: undefined,
    filename: '',
    mediaType: 'text/plain',
  };
}

export function scripted(
  script: Script,
  cancel: AgentExecutor['cancelTask'] = async () => undefined,
): AgentExecutor & { runs: number } {
  const executor = {
    runs: 0,
    execute: async (context: RequestContext, bus: ExecutionEventBus) => {
      executor.runs += 1;
      await script(new Turn(context, bus));
    },
    cancelTask: cancel,
  };
  return executor;
}

/** A door that scripts wait at until the test opens it. */
export function gate(): { wait: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  const wait = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { wait, open };
}
