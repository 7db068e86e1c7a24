import { type Message, Role, TaskState } from '@a2a-js/sdk';
import {
  ClientFactory,
  ClientFactoryOptions,
  createAuthenticatingFetchWithRetry,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OpenOptions } from '../../src/index.js';
import { scripted } from '../transport/executors.js';
import { type PlainSender, startPlainSender } from './plain-sender.js';
import { type Receiver, startReceiver } from './receiver.js';

let peer: PlainSender;

beforeAll(async () => {
  peer = await startPlainSender();
});
afterAll(() => peer.close());

function plainMessage(text: string): Message {
  return {
    messageId: crypto.randomUUID(),
    role: Role.ROLE_USER,
    contextId: '',
    taskId: '',
    parts: [
      { content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: 'text/plain' },
    ],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

/** The SDK's own client, which knows nothing of Holdfast; only its fetch shows a token. */
async function clientOf(receiver: Receiver, protocol: string) {
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => ({ authorization: `Bearer ${peer.token(receiver.url)}` }),
    shouldRetryWithHeaders: async () => undefined,
  });
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
      preferredTransports: [protocol],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    }),
  );
  return factory.createFromUrl(receiver.url);
}

async function ask(protocol: string, options: OpenOptions, text = 'Where is my parcel?') {
  const receiver = await startReceiver([peer], options);
  try {
    const client = await clientOf(receiver, protocol);
    const answer = await client.sendMessage({
      tenant: '',
      message: plainMessage(text),
      configuration: undefined,
      metadata: undefined,
    });
    if (!('status' in answer)) throw new Error('the answer is no task');
    const again = await client.getTask({ tenant: '', id: answer.id, historyLength: undefined });
    return { answer, again };
  } finally {
    await receiver.close();
  }
}

describe.each(['JSONRPC', 'HTTP+JSON'])("the official SDK's client, over %s", (protocol) => {
  it('is refused in a clear sentence by an agent that only takes cases', async () => {
    const { answer, again } = await ask(protocol, {});
    expect(answer.status?.state).toBe(TaskState.TASK_STATE_REJECTED);
    const [part] = answer.status?.message?.parts ?? [];
    expect(part?.content).toEqual({
      $case: 'text',
      value: 'This agent only takes case handovers; it does not answer plain messages.',
    });
    expect(again.status?.state).toBe(TaskState.TASK_STATE_REJECTED);
  });

  it('[R-107][R-108] is answered by the executor of an agent that has one', async () => {
    const executor = scripted((turn) => {
      turn.task();
      turn.artifact('answer', `You asked: ${turn.text}`);
      turn.status(TaskState.TASK_STATE_COMPLETED);
    });
    const { answer, again } = await ask(protocol, { executor });
    expect(answer.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(answer.artifacts[0]?.parts[0]?.content).toEqual({
      $case: 'text',
      value: 'You asked: Where is my parcel?',
    });
    expect(again).toMatchObject({ id: answer.id, artifacts: answer.artifacts });
    expect(executor.runs).toBe(1);
  });
});
