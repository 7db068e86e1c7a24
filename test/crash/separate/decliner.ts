import { type Holdfast, openHoldfast, refundDispute, reject } from '../../../src/index.js';
import type { AgentFolder } from '../agents.js';

/** A third organisation, with a ledger of its own: it takes nothing that it is offered, and nothing ever happens to it. */
export async function startDecliner({ dir }: AgentFolder): Promise<Holdfast> {
  const check = () => reject('records_disagree', 'There is no such payment.');
  const node = await openHoldfast({ dir, handlers: { [refundDispute.id]: { check } } });
  await node.start();
  return node;
}
