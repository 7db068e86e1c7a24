import { formatMoney } from '../core/index.js';
import type { HandoffEnvelope } from '../envelope/index.js';
import type { Holdfast } from '../node/index.js';
import { oneLine, printTable } from './print.js';

/** One reference, and what `evidence get` calls it here; `id` is `null` where this folder does not hold it. */
interface EvidenceHere {
  readonly id: string | null;
  readonly filename: string;
  readonly mediaType: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** The references with what `evidence get` calls them here; `null` in the folder of an agent that did not receive them. */
export async function storedHere(
  { evidence }: Holdfast,
  { references }: HandoffEnvelope,
): Promise<EvidenceHere[]> {
  const stored = await evidence.list();
  return references.map(({ filename, media_type: mediaType, bytes, sha256 }) => {
    const same = stored.filter((one) => one.sha256 === sha256);
    const local = same.find((one) => one.filename === filename) ?? same[0];
    return { id: local ? `${local.artifactId}@${local.version}` : null, filename, mediaType, bytes, sha256 };
  });
}

/** What an envelope says of its case, part by part; a part of which it says nothing is empty. */
export function describeContent(
  envelope: HandoffEnvelope,
  evidence: readonly EvidenceHere[],
  more: readonly string[] = [],
): string[] {
  return [
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
    list('Constraints', [...constraintsOf(envelope), ...more]),
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
  ];
}

function constraintsOf({ constraints }: HandoffEnvelope): string[] {
  const { deadline, caps, prohibitions } = constraints;
  return [
    ...(deadline === undefined ? [] : [`deadline ${deadline}`]),
    ...Object.entries(caps).map(([operation, cap]) => `${operation} at most ${formatMoney(cap)} in all`),
    ...prohibitions.map((operation) => `no ${operation}`),
  ];
}

export function list(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [title, ...lines.map((line) => `  - ${oneLine(line)}`)].join('\n');
}

function block(title: string, columns: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? '' : `${title}\n${printTable(columns, rows)}`;
}
