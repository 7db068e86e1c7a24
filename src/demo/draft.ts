import { refundDispute } from '../contract/index.js';
import { handoffIdOf, type JsonObject, type JsonValue, messageIdOf } from '../core/index.js';
import { buildEnvelope } from '../envelope/index.js';
import { EXTENSION_URI, envelopeMediaType } from '../protocol/index.js';
import { CASE_ID, IMPORTED_EPOCH } from './fixture.js';
import type { Stage } from './stage.js';
import type { AgentName } from './world.js';

const ACCEPT_WITHIN_MS = 600_000;
const URL_LIFETIME_MS = 24 * 3_600_000;
const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

export interface DraftOptions {
  readonly attempt: number;
  readonly caseId?: string;
  readonly epoch?: number;
  readonly from?: AgentName;
  readonly to?: AgentName;
}

/** A sender of our own making: an envelope that is right in every way, to be spoiled in exactly one, and no row in any ledger. */
export async function draftEnvelope(stage: Stage, options: DraftOptions): Promise<JsonObject> {
  const { world } = stage;
  const { attempt, caseId = CASE_ID, epoch = IMPORTED_EPOCH, from = 'triage', to = 'billing' } = options;
  const { caseFile, artifactId } = await stage.prepare();
  const reference = await world.triage.call('reference', {
    artifactId,
    to: world.billingUrl,
    expiresAt: new Date(Date.now() + URL_LIFETIME_MS).toISOString(),
  });
  const fromAgent = world.urlOf(from);
  const { envelope } = await buildEnvelope({
    contract: refundDispute,
    caseFile: { ...caseFile, case_id: caseId },
    root: world.refOf(caseId).root,
    incarnation: await world.ledgers.incarnationOf(world.ledgers.nameFor('triage'), fromAgent),
    handoff_id: handoffIdOf(caseId, epoch),
    attempt,
    from_agent: fromAgent,
    to_agent: world.urlOf(to),
    epoch,
    references: [reference],
    effects: [],
    accept_by: new Date(Date.now() + ACCEPT_WITHIN_MS).toISOString(),
    chain: { hops: [fromAgent], tasks_left: 1 },
    traceparent: TRACEPARENT,
  });
  return structuredClone(envelope) as unknown as JsonObject;
}

/** The one reference of the envelope with some of its fields changed; `undefined` takes a field out. */
export function withReference(
  envelope: JsonObject,
  changes: Record<string, JsonValue | undefined>,
): JsonObject {
  const [reference] = envelope.references as JsonObject[];
  const changed = Object.entries({ ...reference, ...changes }).filter(([, value]) => value !== undefined);
  return { ...envelope, references: [Object.fromEntries(changed) as JsonObject] };
}

export function envelopePart(envelope: JsonValue, version = 2): JsonObject {
  return { mediaType: envelopeMediaType(version), data: envelope };
}

/** The A2A message that carries an envelope, as the wire page says; `parts` replaces what stands in it. */
export function messageOf(envelope: JsonObject, parts?: JsonObject[]): JsonObject {
  const references = envelope.references as JsonObject[];
  return {
    messageId: messageIdOf(String(envelope.handoff_id), Number(envelope.attempt)),
    role: 'ROLE_USER',
    extensions: [EXTENSION_URI],
    parts: parts ?? [
      { text: `Handoff of ${envelope.case_id}.` },
      envelopePart(envelope),
      ...references.map(urlPart),
    ],
  };
}

function urlPart(reference: JsonObject): JsonObject {
  const { url, media_type, filename, sha256, bytes, artifact_id, version, expires_at } = reference;
  const metadata = { sha256, bytes, artifactId: artifact_id, version, expiresAt: expires_at };
  return {
    url,
    mediaType: media_type,
    filename,
    metadata: Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== undefined)),
  } as JsonObject;
}
