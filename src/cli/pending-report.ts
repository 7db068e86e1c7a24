import { HoldfastError, normalizeAgentUrl } from '../core/index.js';
import { createEnvelopeRegistry, envelopeV2, readOffer } from '../envelope/index.js';
import type { PendingOffer } from '../ledger/index.js';
import type { Holdfast } from '../node/index.js';
import { describeContent, list, storedHere } from './envelope-report.js';
import { printFields } from './print.js';
import type { Result } from './run.js';

/** Which of the offers under one handoff id is meant, where there are several. */
export interface WhichOffer {
  readonly attempt?: string;
  readonly from?: string;
  readonly root?: string;
}

/** Without the message, which holds the content. */
export function withoutContent({ message: _, ...offer }: PendingOffer) {
  return offer;
}

/** The undecided offer that a person means. @throws offer_unknown, usage where several fit */
export async function findPending(
  holdfast: Holdfast,
  handoffId: string,
  { attempt, from, root }: WhichOffer,
): Promise<PendingOffer> {
  const found = (await holdfast.listPending()).filter(
    ({ key }) =>
      key.handoffId === handoffId &&
      (attempt === undefined || String(key.attempt) === attempt) &&
      (from === undefined || key.sender === normalizeAgentUrl(from)) &&
      (root === undefined || key.root === normalizeAgentUrl(root)),
  );
  const [only] = found;
  if (only === undefined) {
    throw new HoldfastError('offer_unknown', `No offer ${handoffId} waits for a decision here.`);
  }
  if (found.length === 1) return only;
  throw new HoldfastError(
    'usage',
    `Several offers ${handoffId} wait: say which with --from, --attempt or --root.`,
  );
}

/** What a person decides on: all that the sender says of the case, and what was asked about it; it is another agent's text. */
export async function describePending(holdfast: Holdfast, offer: PendingOffer): Promise<Result> {
  const { key, message, clarifications } = offer;
  if (message === null) throw new HoldfastError('offer_decided');
  const registry = createEnvelopeRegistry([envelopeV2], holdfast.config.vendor);
  // Its size was judged when it came.
  const limits = { maxEnvelopeBytes: Number.POSITIVE_INFINITY };
  const { envelope, canonical } = readOffer(JSON.parse(message), registry, limits);
  const evidence = await storedHere(holdfast, envelope);
  return {
    json: { pending: withoutContent(offer), envelope: JSON.parse(canonical), evidence },
    text: [
      printFields([
        ['handoff', `${key.handoffId}, attempt ${key.attempt}`],
        ['case', offer.ref.caseId],
        ['root', offer.ref.root],
        ['kind', offer.kind],
        ['from', envelope.from_agent],
        ['to', envelope.to_agent],
        ['contract', offer.contract],
        ['state', offer.state],
        ['received', offer.receivedAt],
        ['accept by', offer.acceptBy],
        ['digest', offer.digest],
        ['goal', envelope.goal],
        [
          'content',
          envelope.thin ? 'none: under a thin contract this agent reads the case from its own records' : null,
        ],
      ]),
      ...describeContent(envelope, evidence),
      list(
        'Asked before',
        clarifications.map(({ n, question, answer }) => `${n}: ${question} ${answered(answer)}`),
      ),
    ]
      .filter((part) => part !== '')
      .join('\n\n'),
  };
}

function answered(answer: string | null): string {
  if (answer === null) return '(not answered yet)';
  const { facts = [], text } = JSON.parse(answer);
  return `(answered: ${JSON.stringify({ facts, ...(text === undefined ? {} : { text }) })})`;
}
