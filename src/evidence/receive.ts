import {
  type ErrorCode,
  HoldfastError,
  isHoldfastError,
  type Limits,
  parseUtc,
  SHA256_PATTERN,
  sha256Hex,
} from '../core/index.js';
import { bareMediaType } from '../protocol/index.js';
import { sanitizeFilename } from './filename.js';
import type { EvidenceArtifact, EvidenceDownloader, EvidenceReference, EvidenceStore } from './model.js';

/** What a reference is held against before any connection is made. */
export interface ReferenceBounds {
  readonly limits: Pick<Limits, 'maxEvidenceBytes' | 'evidenceTimeoutMs'>;
  readonly now: Date;
  /** The offer's `accept_by`: a reference must outlive it. */
  readonly acceptBy: Date;
}

export interface ReceiveOptions extends ReferenceBounds {
  readonly downloader: EvidenceDownloader;
  readonly store: EvidenceStore;
  /** The offer was looked at before: what was kept then is the same bytes. */
  readonly again?: boolean;
}

type Download = Awaited<ReturnType<EvidenceDownloader['download']>>;

function refuse(code: ErrorCode, field: string, problem: string): HoldfastError {
  return new HoldfastError(code, undefined, { fields: [{ path: field, problem }] });
}

/**
 * What can be known of a reference without a connection.
 * @throws evidence_hash_missing, evidence_expired, evidence_too_large
 */
export function checkReference(reference: EvidenceReference, options: ReferenceBounds): void {
  if (!SHA256_PATTERN.test(reference.sha256)) {
    throw refuse('evidence_hash_missing', 'sha256', 'must be a SHA-256 in lower-case hex');
  }
  const expires = parseUtc(reference.expires_at);
  if (expires === null || expires <= options.now) {
    throw refuse('evidence_expired', 'expires_at', 'must be a time to come');
  }
  if (expires < options.acceptBy)
    throw refuse('evidence_expired', 'expires_at', 'must not be before accept_by');
  if (reference.bytes > options.limits.maxEvidenceBytes) {
    throw refuse('evidence_too_large', 'bytes', `must be at most ${options.limits.maxEvidenceBytes}`);
  }
}

function asFetchFailure(error: unknown): HoldfastError {
  if (isHoldfastError(error) && error.code.startsWith('evidence_')) return error;
  return new HoldfastError('evidence_unreadable', undefined, { cause: error });
}

/** Marks what fails on the way as a fetch failure, so that a failing disk of our own is never blamed on the sender. */
async function* readBody(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw asFetchFailure(error);
  }
}

/** Lets go of a body nobody will read: an iterator must have started before ending it releases the connection. */
async function abandon(body: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const _ of body) break;
  } catch {
    // The answer is refused already, whatever else is wrong with it.
  }
}

async function download(reference: EvidenceReference, options: ReceiveOptions): Promise<Download> {
  const limits = {
    maxBytes: options.limits.maxEvidenceBytes,
    timeoutMs: options.limits.evidenceTimeoutMs,
  };
  try {
    return await options.downloader.download(reference.url, limits);
  } catch (error) {
    throw asFetchFailure(error);
  }
}

/** One local artifact per thing received, so that a repeated delivery finds what the first one kept. */
function localIdOf(reference: EvidenceReference, filename: string): string {
  const { artifact_id, version, sha256, media_type } = reference;
  return `art_${sha256Hex(JSON.stringify([artifact_id, version, sha256, media_type, filename])).slice(0, 32)}`;
}

/**
 * Fetches one reference once and keeps the bytes only if all that was declared of them is true. The artifact returned is the
 * receiver's own copy, under an id of its own store.
 * @throws evidence_hash_missing, evidence_expired, evidence_too_large, evidence_media_type, evidence_hash_mismatch,
 *   evidence_size_mismatch, evidence_forbidden, evidence_revoked, evidence_unreadable
 */
export async function receiveEvidence(
  reference: EvidenceReference,
  options: ReceiveOptions,
): Promise<EvidenceArtifact> {
  checkReference(reference, options);
  const filename = sanitizeFilename(reference.filename);
  const artifactId = localIdOf(reference, filename);
  const kept = options.again === true ? await options.store.find(artifactId) : null;
  if (kept?.sha256 === reference.sha256) return kept;
  const { mediaType, body } = await download(reference, options);
  const declared = bareMediaType(reference.media_type);
  if (bareMediaType(mediaType ?? '') !== declared) {
    await abandon(body);
    throw refuse('evidence_media_type', 'media_type', 'is not what the server says the content is');
  }
  return options.store.put(
    readBody(body),
    { mediaType: declared, filename, artifactId },
    { sha256: reference.sha256, bytes: reference.bytes, maxBytes: options.limits.maxEvidenceBytes },
  );
}
