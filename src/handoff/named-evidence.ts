import type { VerifiedEvidence } from '../contract/index.js';
import { HoldfastError, isHoldfastError } from '../core/index.js';
import type { HandoffEnvelope } from '../envelope/index.js';
import type { EvidenceArtifact, EvidenceStore } from '../evidence/index.js';

/* What an envelope names as evidence: which of it is meant, and which bytes whoever works with it gets. */

/** Says which of an envelope's references an error is about. */
export async function ofReference<T>(at: number, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    const fields = error.fields.length > 0 ? error.fields : [{ path: 'url', problem: error.message }];
    throw new HoldfastError(error.code, error.message, {
      fields: fields.map(({ path, problem }) => ({ path: `references.${at}.${path}`, problem })),
      data: error.data,
      cause: error,
    });
  }
}

/** The named artifact must be one of the references, in that version, with that digest: newer or older bytes under the same prose are not it. */
export function judgeArtifact({ artifact, references }: HandoffEnvelope): void {
  if (!artifact) return;
  const sameId = references.filter((reference) => reference.artifact_id === artifact.id);
  const same = sameId.find((reference) => reference.version === artifact.version);
  if (!same) {
    throw new HoldfastError('evidence_version', undefined, {
      fields: [{ path: 'artifact', problem: 'must be one of the references, in its version' }],
    });
  }
  if (same.sha256 !== artifact.digest) {
    throw new HoldfastError('evidence_hash_mismatch', undefined, {
      fields: [{ path: 'artifact.digest', problem: 'must be the sha256 of its reference' }],
    });
  }
}

/** Evidence as a check or a worker reads it: the very bytes that were hashed, from this node's own store. */
export function verifiedEvidence(
  artifact: Omit<EvidenceArtifact, 'storedAt'>,
  store: EvidenceStore,
): VerifiedEvidence {
  const { artifactId, version, sha256, bytes, mediaType, filename } = artifact;
  return {
    artifactId,
    version,
    sha256,
    bytes,
    mediaType,
    filename,
    async read() {
      const chunks: Uint8Array[] = [];
      for await (const chunk of store.open(sha256)) chunks.push(chunk);
      return Buffer.concat(chunks);
    },
  };
}
