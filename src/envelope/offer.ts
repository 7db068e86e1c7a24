import {
  CASE_ID_PATTERN,
  canonical,
  type FieldError,
  HoldfastError,
  handoffIdOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type Limits,
  messageIdOf,
  sha256Hex,
} from '../core/index.js';
import type { EvidenceReference } from '../evidence/index.js';
import {
  bareMediaType,
  EXTENSION_URI,
  envelopeMediaType,
  type Message,
  type Part,
} from '../protocol/index.js';
import { type BuiltEnvelope, refuseLarge } from './build.js';
import * as form from './forms.js';
import { findInline } from './inline.js';
import type { EnvelopeCodec, HandoffEnvelope } from './model.js';
import { documentError } from './problems.js';
import type { EnvelopeRegistry } from './registry.js';

function referencePart(reference: EvidenceReference): Part {
  return {
    url: reference.url,
    mediaType: reference.media_type,
    filename: reference.filename,
    metadata: metadataOf(reference),
  };
}

function metadataOf(reference: EvidenceReference): JsonObject {
  return {
    sha256: reference.sha256,
    bytes: reference.bytes,
    artifactId: reference.artifact_id,
    version: reference.version,
    expiresAt: reference.expires_at,
  };
}

/** The A2A message of one attempt: a short text, the envelope, and one url part per reference. No contextId of ours. */
export function buildOfferMessage(
  built: Pick<BuiltEnvelope, 'envelope' | 'canonical'>,
  registry: EnvelopeRegistry,
): Message {
  const { envelope } = built;
  return {
    messageId: messageIdOf(envelope.handoff_id, envelope.attempt),
    role: 'ROLE_USER',
    extensions: [EXTENSION_URI],
    parts: [
      {
        text: `Handover of ${envelope.case_id} under ${envelope.contract}. The structured part is what counts.`,
        mediaType: 'text/plain',
      },
      {
        data: JSON.parse(built.canonical) as JsonValue,
        mediaType: envelopeMediaType(envelope.version, registry.vendor),
      },
      ...envelope.references.map(referencePart),
    ],
  };
}

function isEnvelope(part: Part, registry: EnvelopeRegistry): boolean {
  return part.mediaType !== undefined && registry.find(part.mediaType) !== null;
}

/** @throws envelope_missing, envelope_multiple, version_unknown, schema_invalid when the part is not a data part */
function findEnvelope(
  message: Message,
  registry: EnvelopeRegistry,
): { codec: EnvelopeCodec; value: JsonValue } {
  const parts = message.parts.filter((part) => isEnvelope(part, registry));
  const [part] = parts;
  if (part === undefined) throw new HoldfastError('envelope_missing');
  if (parts.length > 1)
    throw new HoldfastError('envelope_multiple', undefined, { data: { parts: parts.length } });
  const codec = registry.find(part.mediaType ?? '');
  if (codec === null || codec === 'unknown_version') {
    throw new HoldfastError('version_unknown', undefined, {
      data: { supported: registry.mediaTypes.join(', ') },
    });
  }
  if (part.data === undefined) {
    throw documentError('schema_invalid', [
      { path: 'message.parts', problem: 'must hold it as a data part' },
    ]);
  }
  return { codec, value: part.data };
}

/** What accompanies an envelope is a short text and references: content belongs behind one of those. */
function checkOtherParts(message: Message, registry: EnvelopeRegistry): void {
  const inline: FieldError[] = [];
  const unknown: FieldError[] = [];
  message.parts.forEach((part, at) => {
    if (isEnvelope(part, registry) || part.url !== undefined) return;
    const path = `message.parts.${at}`;
    if (part.raw !== undefined) inline.push({ path: `${path}.raw`, problem: 'must be a reference' });
    else if (part.text === undefined) unknown.push({ path, problem: 'has no place in an offer' });
    else inline.push(...[findInline(`${path}.text`, part.text)].filter((each) => each !== null));
  });
  if (inline.length > 0) throw documentError('evidence_inline', inline);
  if (unknown.length > 0) throw documentError('schema_invalid', unknown);
}

/** @throws evidence_hash_missing, evidence_hash_mismatch, schema_invalid */
function checkReference(part: Part, path: string, reference: EvidenceReference): void {
  const given = part.metadata ?? {};
  if (given.sha256 === undefined || given.sha256 === null || given.sha256 === '') {
    const fields = [{ path: `${path}.metadata.sha256`, problem: 'is required' }];
    throw documentError('evidence_hash_missing', fields);
  }
  if (given.sha256 !== reference.sha256) {
    const fields = [{ path: `${path}.metadata.sha256`, problem: 'is not the one the envelope names' }];
    throw documentError('evidence_hash_mismatch', fields);
  }
  const fields = Object.entries(metadataOf(reference))
    .filter(([name, value]) => given[name] !== value)
    .map(([name]) => `${path}.metadata.${name}`);
  if (bareMediaType(part.mediaType ?? '') !== reference.media_type) fields.push(`${path}.mediaType`);
  if (part.filename !== reference.filename) fields.push(`${path}.filename`);
  if (fields.length === 0) return;
  throw documentError(
    'schema_invalid',
    fields.map((each) => ({ path: each, problem: 'is not what the envelope names' })),
  );
}

/** Generic A2A tools see the url parts, the receiver judges the references: both must say the same. */
function checkReferences(message: Message, references: readonly EvidenceReference[]): void {
  const open = new Map(references.map((reference) => [reference.url, reference]));
  message.parts.forEach((part, at) => {
    if (part.url === undefined) return;
    const path = `message.parts.${at}`;
    const reference = open.get(part.url);
    if (reference === undefined) {
      throw documentError('schema_invalid', [
        { path: `${path}.url`, problem: 'is not a reference of its own' },
      ]);
    }
    open.delete(part.url);
    checkReference(part, path, reference);
  });
  if (open.size === 0) return;
  const missing = references
    .map((each, at) => ({ url: each.url, path: `references.${at}` }))
    .filter(({ url }) => open.has(url));
  throw documentError(
    'schema_invalid',
    missing.map(({ path }) => ({ path, problem: 'has no url part in the message' })),
  );
}

/**
 * Reads an offer as far as its own bytes allow; nothing of the ledger or the network is needed.
 * @throws envelope_missing, envelope_multiple, version_unknown, envelope_too_large, schema_invalid, fact_unsourced,
 *   evidence_inline, evidence_hash_missing, evidence_hash_mismatch, message_id_mismatch
 */
export function readOffer(
  message: Message,
  registry: EnvelopeRegistry,
  limits: Pick<Limits, 'maxEnvelopeBytes'>,
): { envelope: HandoffEnvelope; canonical: string; digest: string } {
  const { codec, value } = findEnvelope(message, registry);
  const text = canonical(value);
  refuseLarge(text, limits.maxEnvelopeBytes);
  const envelope = codec.parse(value);
  if (envelope.handoff_id !== handoffIdOf(envelope.case_id, envelope.epoch)) {
    throw documentError('schema_invalid', [{ path: 'handoff_id', problem: 'must be case_id:epoch+1' }]);
  }
  if (message.messageId !== messageIdOf(envelope.handoff_id, envelope.attempt)) {
    throw documentError('message_id_mismatch', [
      { path: 'message.messageId', problem: 'must be handoff_id:attempt' },
    ]);
  }
  checkOtherParts(message, registry);
  checkReferences(message, envelope.references);
  return { envelope, canonical: text, digest: sha256Hex(text) };
}

/** The envelope of an offer that was accepted, as the ledger kept it. @throws version_unknown when its codec is gone */
export function readStoredEnvelope(text: string, registry: EnvelopeRegistry): HandoffEnvelope {
  const value = JSON.parse(text) as { version: number };
  const codec = registry.find(envelopeMediaType(value.version, registry.vendor));
  if (codec === null || codec === 'unknown_version') throw new HoldfastError('version_unknown');
  return codec.parse(value);
}

/** The identity of an offer, enough to store a rejection under. */
export interface OfferKey {
  readonly root: string;
  readonly caseId: string;
  readonly handoffId: string;
  readonly attempt: number;
  readonly digest: string;
}

/** Reads only the identity, from an offer whose other fields may be wrong; null where it cannot be known for certain. */
export function readOfferKey(message: Message, registry: EnvelopeRegistry): OfferKey | null {
  const parts = message.parts.filter((part) => isEnvelope(part, registry));
  const value = parts[0]?.data;
  const codec = registry.find(parts[0]?.mediaType ?? '');
  if (parts.length !== 1 || codec === null || codec === 'unknown_version') return null;
  if (!isJsonObject(value)) return null;
  const root = form.agentUrl.safeParse(value.root);
  const caseId = value.case_id;
  const handoffId = form.handoffId.safeParse(value.handoff_id);
  const attempt = form.positive.safeParse(value.attempt);
  if (!root.success || !handoffId.success || !attempt.success) return null;
  if (typeof caseId !== 'string' || !CASE_ID_PATTERN.test(caseId)) return null;
  if (!handoffId.data.startsWith(`${caseId}:`)) return null;
  return {
    root: root.data,
    caseId,
    handoffId: handoffId.data,
    attempt: attempt.data,
    digest: sha256Hex(canonical(value)),
  };
}
