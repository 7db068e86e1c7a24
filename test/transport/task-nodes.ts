import { afterEach, vi } from 'vitest';
import { type Script, scripted } from './executors.js';
import { PEER, plainMessage, rpc, startNode, type TestNode } from './support.js';

/** Nodes that a test file starts, and what has to be cleaned up after each of its tests. */
export const nodes: TestNode[] = [];
export const afterwards: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
  for (const clean of afterwards.splice(0)) await clean();
  vi.restoreAllMocks();
});

export async function start(...options: Parameters<typeof startNode>): Promise<TestNode> {
  const node = await startNode(...options);
  nodes.push(node);
  return node;
}

export const startWith = (script: Script, cancel?: Parameters<typeof scripted>[1]) =>
  start({ executor: scripted(script, cancel), turnWaitMs: 300 });

export const send = async (node: TestNode, message = plainMessage(), configuration: object = {}) =>
  (await rpc(node, 'SendMessage', { message, configuration })).body;

export const stateOf = async (node: TestNode, id: string) =>
  (await rpc(node, 'GetTask', { id })).body.result?.status.state as string | undefined;

export function openStream(
  node: TestNode,
  method: string,
  params: object,
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${node.url}/a2a`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0', authorization: `Bearer ${PEER}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    ...(signal === undefined ? {} : { signal }),
  });
}
