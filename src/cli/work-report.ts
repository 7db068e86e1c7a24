import { createEnvelopeRegistry, envelopeV2, readStoredEnvelope } from '../envelope/index.js';
import type { WorkItem } from '../ledger/index.js';
import type { Holdfast } from '../node/index.js';
import { describeContent, storedHere } from './envelope-report.js';
import { printFields } from './print.js';
import type { Result } from './run.js';

/** The item with its envelope and result as documents, not as text inside text. */
export function withDocuments(item: WorkItem) {
  return {
    ...item,
    envelope: JSON.parse(item.envelope),
    result: item.result === null ? null : JSON.parse(item.result),
  };
}

/** What was handed over, as the receiving side reads it; evidence under the ids of this agent's own store. */
export async function describeWork(holdfast: Holdfast, item: WorkItem): Promise<Result> {
  const registry = createEnvelopeRegistry([envelopeV2], holdfast.config.vendor);
  const envelope = readStoredEnvelope(item.envelope, registry);
  const evidence = await storedHere(holdfast, envelope);
  return {
    json: { work: withDocuments(item), evidence },
    text: [
      printFields([
        ['work item', item.id],
        ['case', item.ref.caseId],
        ['root', item.ref.root],
        ['handoff', `${item.key.handoffId}, attempt ${item.key.attempt}`],
        ['from', envelope.from_agent],
        ['owner', item.owner],
        ['contract', item.contract],
        ['state', item.state],
        ['epoch', item.epoch],
        ['since', item.createdAt],
        ['settled', item.settledAt],
        ['result', item.result],
        ['goal', envelope.goal],
      ]),
      ...describeContent(envelope, evidence, [`was to be accepted by ${envelope.accept_by}`]),
    ]
      .filter((part) => part !== '')
      .join('\n\n'),
  };
}
