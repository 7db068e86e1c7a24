import { toUtc } from '../core/index.js';
import { sanitizeFilename } from './filename.js';
import type { EvidenceArtifact, EvidenceReference } from './model.js';

/** How one artifact version is named in an envelope, readable behind `url` until `expiresAt`. */
export function buildReference(artifact: EvidenceArtifact, url: string, expiresAt: Date): EvidenceReference {
  return {
    url,
    media_type: artifact.mediaType,
    filename: sanitizeFilename(artifact.filename),
    bytes: artifact.bytes,
    sha256: artifact.sha256,
    artifact_id: artifact.artifactId,
    version: artifact.version,
    expires_at: toUtc(expiresAt),
  };
}
