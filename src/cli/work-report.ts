import { formatMoney } from '../core/index.js';
import {
  createEnvelopeRegistry,
  envelopeV2,
  type HandoffEnvelope,
  readStoredEnvelope,
} from '../envelope/index.js';
import type { WorkItem } from '../ledger/index.js';
import type { Holdfast } from '../node/index.js';
import { oneLine, printFields, printTable } from './print.js';
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
      list('Done', envelope.done),
      list('Remaining', envelope.remaining),
      list('Open questions', envelope.open_questions),
      block(
        'Facts',
        ['FACT', 'VALUE', 'SOURCE', 'VERIFIED'],
        envelope.facts.map(({ key, value, source, verified }) => [
          key,
          typeof value === 'string' ? value : JSON.stringify(value),
          source,
          verified ? 'verified' : 'claimed',
        ]),
      ),
      list('Constraints', constraintsOf(envelope)),
      block(
        'Effects before the handover',
        ['KEY', 'OPERATION', 'AMOUNT', 'STATE'],
        envelope.effects.map(({ key, operation, amount, status }) => [
          key,
          operation,
          amount ? formatMoney(amount) : '',
          status,
        ]),
      ),
      block(
        'Evidence (`holdfast evidence get` reads it)',
        ['EVIDENCE', 'FILE', 'TYPE', 'BYTES', 'SHA256'],
        evidence.map(({ id, filename, mediaType, bytes, sha256 }) => [
          id ?? 'not stored here',
          filename,
          mediaType,
          String(bytes),
          sha256,
        ]),
      ),
    ]
      .filter((part) => part !== '')
      .join('\n\n'),
  };
}

/** The references with what `evidence get` calls them here; `null` in the folder of an agent that did not receive them. */
async function storedHere({ evidence }: Holdfast, { references }: HandoffEnvelope) {
  const stored = await evidence.list();
  return references.map(({ filename, media_type: mediaType, bytes, sha256 }) => {
    const same = stored.filter((one) => one.sha256 === sha256);
    const local = same.find((one) => one.filename === filename) ?? same[0];
    return { id: local ? `${local.artifactId}@${local.version}` : null, filename, mediaType, bytes, sha256 };
  });
}

function constraintsOf({ constraints, accept_by }: HandoffEnvelope): string[] {
  const { deadline, caps, prohibitions } = constraints;
  return [
    ...(deadline === undefined ? [] : [`deadline ${deadline}`]),
    ...Object.entries(caps).map(([operation, cap]) => `${operation} at most ${formatMoney(cap)} in all`),
    ...prohibitions.map((operation) => `no ${operation}`),
    `was to be accepted by ${accept_by}`,
  ];
}

function list(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [title, ...lines.map((line) => `  - ${oneLine(line)}`)].join('\n');
}

function block(title: string, columns: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? '' : `${title}\n${printTable(columns, rows)}`;
}
