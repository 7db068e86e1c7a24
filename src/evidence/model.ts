/** A reference as it crosses: enough to fetch, and to know that what came is what was meant. */
export interface EvidenceReference {
  readonly url: string;
  readonly media_type: string;
  readonly filename: string;
  readonly bytes: number;
  /** Lower-case hex over the bytes as stored. */
  readonly sha256: string;
  readonly artifact_id: string;
  readonly version: number;
  /** UTC; the URL does not work afterwards. */
  readonly expires_at: string;
}

/** One immutable version of an artifact in a store. */
export interface EvidenceArtifact {
  readonly artifactId: string;
  readonly version: number;
  readonly sha256: string;
  readonly bytes: number;
  readonly mediaType: string;
  readonly filename: string;
  readonly storedAt: string;
  /** Where it was revoked: it is not served or offered any more. */
  readonly revoked?: { readonly at: string; readonly reason: string };
}

/** What must be true of the bytes for them to be kept. */
export interface ExpectedBytes {
  readonly sha256?: string;
  readonly bytes?: number;
  readonly maxBytes: number;
}

/** Content-addressed: bytes are kept once under their SHA-256; an artifact id has versions 1, 2, … that never change. */
export interface EvidenceStore {
  /**
   * Streams the content in, hashing as it goes; nothing is kept unless all that is expected holds.
   * Without `artifactId` a new one is made; with it the next version is added (the same bytes again: the version that has them).
   * @throws usage, evidence_hash_mismatch, evidence_size_mismatch, evidence_too_large
   */
  put(
    content: AsyncIterable<Uint8Array>,
    info: { mediaType: string; filename: string; artifactId?: string },
    expected: ExpectedBytes,
  ): Promise<EvidenceArtifact>;
  /** The latest version where none is named. */
  find(artifactId: string, version?: number): Promise<EvidenceArtifact | null>;
  /** Every version of every artifact, oldest first. */
  list(): Promise<EvidenceArtifact[]>;
  /** Marks a version for good; the first reason stays. `null` where there is no such version. */
  revoke(artifactId: string, version: number, reason: string): Promise<EvidenceArtifact | null>;
  /** The bytes under a digest. @throws evidence_file_missing */
  open(sha256: string): AsyncIterable<Uint8Array>;
}

/** One guarded download: the body as a stream and its media type as the server names it, under the receiver's own identity. */
export interface EvidenceDownloader {
  /** @throws evidence_forbidden, evidence_revoked, evidence_unreadable, evidence_too_large */
  download(
    url: string,
    limits: { maxBytes: number; timeoutMs: number },
  ): Promise<{ mediaType: string | null; body: AsyncIterable<Uint8Array> }>;
}
