import { refundDispute } from '../../src/contract/index.js';
import { DEFAULT_LIMITS, type JsonObject, type JsonValue } from '../../src/core/index.js';
import {
  type BuildInput,
  buildEnvelope,
  buildOfferMessage,
  createEnvelopeRegistry,
  envelopeV2,
  parseCaseFile,
} from '../../src/envelope/index.js';
import type { EvidenceReference } from '../../src/evidence/index.js';
import type { Message } from '../../src/protocol/index.js';
import { refundFacts } from '../refund-facts.js';

export const TRIAGE = 'https://triage.example';
export const BILLING = 'https://billing.example/agents/billing';

export const registry = createEnvelopeRegistry([envelopeV2]);

export const reference: EvidenceReference = {
  url: `${TRIAGE}/evidence/art_1/1?aud=x&exp=1&sha256=y&sig=z`,
  media_type: 'text/plain',
  filename: 'transcript.txt',
  bytes: 1234,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  artifact_id: 'art_1',
  version: 1,
  expires_at: '2026-02-01T10:00:00.000Z',
};

export function caseFileJson(): JsonObject {
  return {
    case_id: 'CASE-7001',
    kind: 'refund-dispute',
    goal: 'Refund the duplicate charge',
    done: ['Account verified', 'Two payments of 49.00 EUR found, 40 s apart'],
    remaining: ['Decide on the refund', 'Issue the refund once'],
    facts: refundFacts(),
    open_questions: ['Was the second charge captured?'],
    constraints: {
      deadline: '2026-02-02T10:00:00Z',
      caps: { refund: { amount: '100.00', currency: 'EUR' } },
      prohibitions: ['publish'],
    },
  };
}

export const bytesOf = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

function inputOf(change: JsonObject = {}, more: Partial<BuildInput> = {}): BuildInput {
  return {
    contract: refundDispute,
    caseFile: parseCaseFile(bytesOf({ ...caseFileJson(), ...change }), DEFAULT_LIMITS),
    root: TRIAGE,
    incarnation: 'inc_1',
    handoff_id: 'CASE-7001:4',
    attempt: 1,
    from_agent: TRIAGE,
    to_agent: BILLING,
    epoch: 3,
    references: [reference],
    effects: [],
    accept_by: '2026-01-31T12:00:00.000Z',
    chain: { hops: [TRIAGE], tasks_left: 4 },
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    ...more,
  };
}

export const build = (change: JsonObject = {}, more: Partial<BuildInput> = {}) =>
  buildEnvelope(inputOf(change, more));

/** A well-formed envelope as plain JSON, to be bent by tests. */
export async function envelopeJson(change: JsonObject = {}): Promise<JsonObject> {
  const { canonical } = await build();
  return { ...(JSON.parse(canonical) as JsonObject), ...change };
}

/** The offer message of the case, with its envelope replaced. */
export async function offerWith(envelope: JsonValue): Promise<Message> {
  const message = buildOfferMessage(await build(), registry);
  return { ...message, parts: message.parts.map((part) => (part.data ? { ...part, data: envelope } : part)) };
}
