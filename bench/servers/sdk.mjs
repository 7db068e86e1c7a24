/**
 * The official SDK as it comes: its express adapter, its request handler, its store of tasks in memory. The executor does the least an
 * agent can do: it publishes one finished task with an artifact as large as a receipt. Nothing is checked, nothing is durable.
 */
import { TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

const artifact = {
  artifactId: 'answer',
  name: 'Answer',
  description: '',
  parts: [
    {
      content: { $case: 'data', value: { accepted: true, receipt: 'r'.repeat(800) } },
      metadata: undefined,
      filename: '',
      mediaType: 'application/json',
    },
  ],
  metadata: undefined,
  extensions: [],
};

const executor = {
  async execute({ taskId: id, contextId, userMessage }, bus) {
    const status = {
      state: TaskState.TASK_STATE_COMPLETED,
      message: undefined,
      timestamp: new Date().toISOString(),
    };
    bus.publish(
      AgentEvent.task({
        id,
        contextId,
        status,
        artifacts: [artifact],
        history: [userMessage],
        metadata: undefined,
      }),
    );
  },
  async cancelTask() {},
};

const card = {
  name: 'bare',
  description: 'bare',
  version: '1.0.0',
  supportedInterfaces: [{ url: 'http://127.0.0.1/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { extensions: [] },
  defaultInputModes: ['application/json'],
  defaultOutputModes: ['application/json'],
  skills: [],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const app = express();
app.use('/a2a', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}/a2a\n`);
});
