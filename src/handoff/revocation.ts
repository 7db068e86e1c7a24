import { type AcceptanceKey, ERROR_TABLE, HoldfastError, isHoldfastError } from '../core/index.js';
import type { EvidenceArtifact, EvidenceStore } from '../evidence/index.js';
import type { LedgerStore, OfferRow, OfferState } from '../ledger/index.js';
import { rejectionPart } from './answers.js';
import { checkArguments } from './arguments.js';
import { checkReason } from './people.js';

/** What is to be used no more. */
export interface RevokeInput {
  readonly artifactId: string;
  /** All versions that there are where absent. */
  readonly version?: number;
  /** Why, one line of at most 500 characters without personal data; it stands in the audit. */
  readonly reason: string;
}

/** An offer that carries what was revoked. */
export interface RevokedOffer {
  readonly key: AcceptanceKey;
  readonly artifactId: string;
  readonly version: number;
  /** As it is now. */
  readonly state: OfferState;
  /** Whether it stands in the audit of the case; not where that is quarantined. */
  readonly recorded: boolean;
}

/** What a revocation came to. */
export interface Revocation {
  readonly artifacts: readonly EvidenceArtifact[];
  /** Offers of this agent, newest first; those that were closed before without an acceptance are not among them. */
  readonly offers: readonly RevokedOffer[];
}

export interface RevocationOptions {
  readonly self: string;
  readonly tenant: string;
  readonly ledger: LedgerStore;
  readonly store: EvidenceStore;
}

/**
 * Revokes evidence for good: first it is served and offered no more, then each offer that carries it is dealt with. Saying it again goes
 * on where a crash ended it, and records nothing twice.
 * @throws evidence_file_missing, personal_data, usage
 */
export async function revokeEvidence(input: RevokeInput, options: RevocationOptions): Promise<Revocation> {
  checkArguments('revokeEvidence', input);
  checkReason(input.reason);
  const { artifactId, version, reason } = input;
  const found = (await options.store.list()).filter(
    (each) => each.artifactId === artifactId && (version === undefined || each.version === version),
  );
  if (found.length === 0) {
    const which = version === undefined ? artifactId : `${artifactId}@${version}`;
    throw new HoldfastError('evidence_file_missing', `There is no artifact ${which} in the evidence store.`);
  }
  const artifacts: EvidenceArtifact[] = [];
  for (const each of found) {
    const revoked = await options.store.revoke(artifactId, each.version, reason);
    if (revoked) artifacts.push(revoked);
  }
  const offers: RevokedOffer[] = [];
  for (const offer of await offersWith(artifactId, options)) {
    for (const artifact of artifacts.filter(({ version: one }) => carries(offer, artifactId, one))) {
      offers.push(await tellOf(offer, artifact, options));
    }
  }
  return { artifacts, offers };
}

/** Only those that it still means something for. */
async function offersWith(
  artifactId: string,
  { self, tenant, ledger }: RevocationOptions,
): Promise<OfferRow[]> {
  const holds = `"artifactId":${JSON.stringify(artifactId)}`;
  const offers = await ledger.listOffers(tenant, { from: self, holds });
  return offers.filter(({ state }) => !['rejected', 'withdrawn', 'expired'].includes(state));
}

function carries({ message }: OfferRow, artifactId: string, version: number): boolean {
  const { parts } = JSON.parse(message) as {
    parts: readonly { readonly metadata?: Record<string, unknown> }[];
  };
  return parts.some(({ metadata }) => metadata?.artifactId === artifactId && metadata.version === version);
}

async function tellOf(
  { key, ref }: OfferRow,
  { artifactId, version, sha256, revoked }: EvidenceArtifact,
  { ledger }: RevocationOptions,
): Promise<RevokedOffer> {
  const told = (state: OfferState, recorded: boolean) => ({ key, artifactId, version, state, recorded });
  const entries = await ledger.readAudit(ref);
  const isKnown = entries.some(
    ({ type, handoffId, attempt, data }) =>
      type === 'evidence_revoked' &&
      handoffId === key.handoffId &&
      attempt === key.attempt &&
      data?.artifactId === artifactId &&
      data.version === version,
  );
  const now = await ledger.getOffer(key);
  if (isKnown && now) return told(now.state, true);
  const rejection = { code: 'evidence_revoked', reason: ERROR_TABLE.evidence_revoked.meaning };
  const answer = JSON.stringify(rejectionPart(rejection, { key, ref }, true));
  const reason = revoked?.reason ?? '';
  try {
    const offer = await ledger.recordRevocation({ key, artifactId, version, sha256, reason, answer });
    return told(offer.state, true);
  } catch (error) {
    if (!now || !isHoldfastError(error) || error.code !== 'case_quarantined') throw error;
    return told(now.state, false);
  }
}
