import { TaskState } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor } from '@a2a-js/sdk/server';
import { toUtc } from '../core/index.js';
import { agentText } from './task-events.js';

/** For nodes without a handler of their own: a plain message is refused in a sentence that says what is taken instead. */
export const refusingExecutor: AgentExecutor = {
  execute: async ({ taskId, contextId, userMessage }, bus) => {
    const text = 'This agent only takes case handovers; it does not answer plain messages.';
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: {
          state: TaskState.TASK_STATE_REJECTED,
          message: agentText(taskId, contextId, text),
          timestamp: toUtc(new Date()),
        },
        artifacts: [],
        history: [userMessage],
        metadata: undefined,
      }),
    );
  },
  cancelTask: async () => undefined,
};
