import { canonical, HoldfastError, type JsonObject, newId, parsePerson, sha256Hex } from '../core/index.js';
import type { ApprovalClaims, HandoffEnvelope } from '../envelope/index.js';
import type { Approval } from '../ledger/index.js';
import {
  APPROVAL_TYPE,
  isApproval,
  type NodeIdentity,
  type PeerDirectory,
  type PeerKeySource,
  verifyApproval,
} from '../trust/index.js';

/*
 * A person hands a case over through their agent, which alone can send: it signs that the person approved of exactly this offer, and the
 * envelope carries that as the last of its provenance.
 */

/** Signs what the person approved: an envelope that is whole but for the approval. */
export function signApproval(
  person: string,
  { envelope, digest }: { readonly envelope: HandoffEnvelope; readonly digest: string },
  identity: NodeIdentity,
  now: Date,
): Promise<string> {
  const claims: ApprovalClaims = {
    iss: identity.url,
    person,
    ...aboutOf(envelope),
    action: digest,
    iat: Math.floor(now.getTime() / 1000),
    jti: newId('approval'),
  };
  return identity.sign(APPROVAL_TYPE, claims);
}

/**
 * The approval that an envelope carries; undefined where there is none.
 * @throws provenance_invalid where it does not verify, or is of another offer; peer_unreachable
 */
export async function approvalIn(
  { envelope, canonical: text }: { readonly envelope: HandoffEnvelope; readonly canonical: string },
  { peers, keys }: { readonly peers: PeerDirectory; readonly keys: PeerKeySource },
): Promise<Approval | undefined> {
  const { provenance, from_agent: from } = envelope;
  const found = provenance.findIndex(isApproval);
  const approval = provenance[found];
  if (approval === undefined) return undefined;
  const path = `provenance.${found}`;
  const peer = peers.find(from);
  if (found !== provenance.length - 1 || peer === null) throw invalid(path, 'must be the last');
  const claims = await verifyApproval(approval, peer, keys).catch((error: unknown) => {
    if (!(error instanceof HoldfastError) || error.code !== 'receipt_invalid') throw error;
    throw invalid(path, 'does not verify with the key of the sender', error);
  });
  const document = JSON.parse(text) as JsonObject;
  const action = sha256Hex(canonical({ ...document, provenance: provenance.slice(0, -1) }));
  const expected = { iss: from, ...aboutOf(envelope), action };
  const isOf = Object.entries(expected).every(
    ([name, value]) => claims[name as keyof typeof expected] === value,
  );
  if (!isOf || parsePerson(claims.person)?.node !== from)
    throw invalid(path, 'is an approval of another offer');
  return { person: claims.person, digest: sha256Hex(approval) };
}

function aboutOf({ root, case_id, handoff_id, attempt, to_agent, epoch }: HandoffEnvelope) {
  return { root, case_id, handoff_id, attempt, to_agent, epoch };
}

function invalid(path: string, problem: string, cause?: unknown): HoldfastError {
  return new HoldfastError('provenance_invalid', undefined, { fields: [{ path, problem }], cause });
}
