import { type Clock, HoldfastError, toUtc } from '../core/index.js';
import {
  buildReference,
  type EvidenceArtifact,
  type EvidenceReference,
  type EvidenceStore,
  signEvidenceUrl,
} from '../evidence/index.js';
import type { HandOffInput } from './model.js';

/** One artifact that goes along, as who hands the case over names it. */
export type NamedEvidence = NonNullable<HandOffInput['evidence']>[number];

/** What this agent's evidence is offered from. */
export interface OfferedEvidence {
  readonly store: EvidenceStore;
  /** Signs the URLs. */
  readonly secret: Uint8Array;
  readonly urlTtlMs: number;
}

/** Whose evidence is offered to whom, and until when it has to be there. */
interface ForOffer {
  readonly self: string;
  readonly to: string;
  readonly acceptBy: Date;
}

/** References that only the addressee can fetch. @throws evidence_expires_early, evidence_file_missing, evidence_revoked */
export async function referencesFor(
  evidence: readonly NamedEvidence[],
  { self, to, acceptBy }: ForOffer,
  { store, secret, urlTtlMs }: OfferedEvidence,
  clock: Clock,
): Promise<EvidenceReference[]> {
  const expiresAt = new Date(clock.now().getTime() + urlTtlMs);
  if (expiresAt < acceptBy && evidence.length > 0) {
    throw new HoldfastError('evidence_expires_early', undefined, {
      data: { expires_at: toUtc(expiresAt), accept_by: toUtc(acceptBy) },
    });
  }
  const references: EvidenceReference[] = [];
  for (const named of evidence) {
    const artifact = await offerable(named, store);
    const { artifactId, version, sha256 } = artifact;
    const url = signEvidenceUrl(secret, {
      ...{ baseUrl: self, artifactId, version, sha256 },
      audience: to,
      expiresAt,
    });
    references.push(buildReference(artifact, url, expiresAt));
  }
  return references;
}

/** @throws evidence_file_missing, evidence_revoked */
export async function offerable(
  { artifactId, version }: NamedEvidence,
  store: EvidenceStore,
): Promise<EvidenceArtifact> {
  const artifact = await store.find(artifactId, version);
  if (!artifact) {
    throw new HoldfastError(
      'evidence_file_missing',
      `There is no artifact ${artifactId} in the evidence store.`,
    );
  }
  if (artifact.revoked) {
    throw new HoldfastError(
      'evidence_revoked',
      `Version ${artifact.version} of ${artifact.artifactId} was revoked: ${artifact.revoked.reason}`,
    );
  }
  return artifact;
}
