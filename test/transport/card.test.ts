import { AgentCard, type Task } from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { expect, test } from 'vitest';
import { EXTENSION_URI, envelopeMediaType } from '../../src/protocol/index.js';
import { buildAgentCard } from '../../src/transport/index.js';
import { cardFor, PEER, startNode } from './support.js';

test("the card is valid proto JSON: it comes through the SDK's codec unchanged", () => {
  const card = cardFor('https://billing.example.com');
  // The codec leaves out what has its default value; nothing else may differ.
  const { capabilities, ...rest } = AgentCard.toJSON(AgentCard.fromJSON(card)) as Record<string, never>;
  const { capabilities: ours, ...others } = card;
  expect(rest).toEqual({ ...others, securityRequirements: [{ schemes: { bearer: {} } }] });
  expect(capabilities).toMatchObject({ streaming: true, extensions: [{ uri: EXTENSION_URI }] });
  expect(ours).toMatchObject({
    streaming: true,
    pushNotifications: true,
    extensions: [{ required: false }],
  });
  expect(AgentCard.fromJSON(card).capabilities?.pushNotifications).toBe(true);
});

test('required fields stand in the card even if they are empty', () => {
  const card = buildAgentCard({
    name: '',
    description: '',
    url: 'https://a.example',
    version: '',
    skills: [],
    mediaTypes: [],
  });
  for (const name of [
    'name',
    'description',
    'supportedInterfaces',
    'version',
    'capabilities',
    'defaultInputModes',
    'defaultOutputModes',
    'skills',
  ]) {
    expect(card).toHaveProperty(name);
  }
  expect(card.supportedInterfaces).toEqual([
    { url: 'https://a.example/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: 'https://a.example/a2a/rest', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
  ]);
});

test('skills that take handovers list the envelope', () => {
  const [skill] = cardFor('https://a.example').skills as { inputModes: string[] }[];
  expect(skill?.inputModes).toContain(envelopeMediaType(2));
});

test("[R-107] the SDK's own client sends a plain text message and gets a valid answer, on both bindings", async () => {
  const node = await startNode();
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${PEER}`);
    return fetch(input, { ...init, headers });
  };
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl });
  for (const transport of [
    new JsonRpcTransportFactory({ fetchImpl }),
    new RestTransportFactory({ fetchImpl }),
  ]) {
    const client = await new ClientFactory({ transports: [transport], cardResolver }).createFromUrl(node.url);
    const message = {
      messageId: crypto.randomUUID(),
      contextId: '',
      taskId: '',
      role: 1,
      parts: [
        {
          content: { $case: 'text', value: 'Hello' } as const,
          metadata: undefined,
          filename: '',
          mediaType: '',
        },
      ],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    };
    const answer = (await client.sendMessage({
      tenant: '',
      message,
      configuration: undefined,
      metadata: undefined,
    })) as Task;
    expect(answer.status?.state).toBe(7);
    expect(await client.getTask({ tenant: '', id: answer.id })).toEqual(answer);
    const events = [];
    const params = { tenant: '', message, configuration: undefined, metadata: undefined };
    for await (const event of client.sendMessageStream(params)) events.push(event.payload?.$case);
    expect(events).toEqual(['task']);
    await expect(client.getTask({ tenant: '', id: 'unknown' })).rejects.toThrow('Task not found');
  }
  await node.close();
});
