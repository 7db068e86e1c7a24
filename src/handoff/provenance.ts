import { type CaseRef, HoldfastError, handoffIdOf } from '../core/index.js';
import type { HandoffEnvelope } from '../envelope/index.js';
import { type CaseRow, chainTo, type KindDefinition, type Transfer } from '../ledger/index.js';
import {
  issuerOf,
  type NodeIdentity,
  type Peer,
  type PeerDirectory,
  type PeerKeySource,
  verifyReceipt,
} from '../trust/index.js';

/** A case as far as its next handover is judged by it. */
export type CaseStanding = Pick<
  CaseRow,
  'kind' | 'status' | 'owner' | 'epoch' | 'hops' | 'tasksLeft' | 'constraints'
>;

export interface ProvenanceOptions {
  readonly identity: NodeIdentity;
  readonly peers: PeerDirectory;
  readonly keys: PeerKeySource;
}

/**
 * The changes of owner that the envelope's receipts prove, in the envelope's order. Each is verified with the pinned key of the configured
 * peer that issued it; what follows from them is for the ledger to say.
 * @throws provenance_unknown naming the receipt, provenance_invalid; peer_unreachable where an issuer's keys cannot be read now
 */
export async function verifyProvenance(
  envelope: HandoffEnvelope,
  ref: CaseRef,
  { identity, peers, keys }: ProvenanceOptions,
): Promise<Transfer[]> {
  const ownKeys: PeerKeySource = { keysOf: async () => identity.jwks().keys };
  const transfers: Transfer[] = [];
  for (const [at, receipt] of envelope.provenance.entries()) {
    const path = `provenance.${at}`;
    const issuer = issuerOf(receipt) ?? '';
    const isOwn = issuer === identity.url;
    const peer = isOwn ? selfAsPeer(identity) : peers.find(issuer);
    if (peer === null) {
      throw new HoldfastError('provenance_unknown', undefined, {
        fields: [{ path, problem: 'is of no agent that is configured here' }],
      });
    }
    const { claims, key } = await verifyReceipt(receipt, peer, isOwn ? ownKeys : keys).catch(
      (error: unknown) => {
        throw isReceiptInvalid(error)
          ? invalid(path, 'does not verify with the key of its issuer', error)
          : error;
      },
    );
    const isStep =
      claims.iss === peer.url &&
      claims.to_agent === peer.url &&
      claims.root === ref.root &&
      claims.case_id === ref.caseId &&
      claims.from_agent !== claims.to_agent &&
      claims.new_epoch === claims.old_epoch + 1 &&
      claims.handoff_id === handoffIdOf(ref.caseId, claims.old_epoch);
    if (!isStep) throw invalid(path, 'is no change of owner of this case');
    const { from_agent: sender, handoff_id: handoffId, attempt } = claims;
    transfers.push({
      key: { tenant: ref.tenant, root: ref.root, sender, handoffId, attempt },
      ref,
      toAgent: claims.to_agent,
      oldEpoch: claims.old_epoch,
      newEpoch: claims.new_epoch,
      digest: claims.digest,
      receipt,
      receiptKey: JSON.stringify(key),
    });
  }
  return transfers;
}

/** A sender need not know what this agent has kept of its own receipts. */
export function selfAsPeer({ url, thumbprint }: NodeIdentity): Peer {
  return { url, key: thumbprint, tenant: '', contracts: [], skills: [] };
}

function isReceiptInvalid(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'receipt_invalid';
}

function invalid(path: string, problem: string, cause?: unknown): HoldfastError {
  return new HoldfastError('provenance_invalid', undefined, { fields: [{ path, problem }], cause });
}

/**
 * The case as it is once what was proved is taken over, to be looked at before anything is fetched. The acceptance transaction judges
 * anew, and only that counts. Null where the case is not known and cannot become so.
 */
export function standingOf(
  row: CaseRow | null,
  kind: KindDefinition,
  envelope: HandoffEnvelope,
  ref: CaseRef,
  transfers: readonly Transfer[],
): CaseStanding | null {
  if (kind.mode === 'shared') return row;
  if (row === null) return firstContact(kind, envelope, ref, transfers);
  let standing: CaseStanding = row;
  for (const { key, toAgent, oldEpoch, newEpoch } of transfers) {
    if (newEpoch <= standing.epoch) continue;
    if (key.sender !== standing.owner || oldEpoch !== standing.epoch) break;
    const { hops, tasksLeft } = standing;
    standing = {
      ...standing,
      owner: toAgent,
      epoch: newEpoch,
      hops: [...hops, key.sender],
      tasksLeft: tasksLeft - 1,
    };
  }
  return standing;
}

function firstContact(
  { kind, limits }: KindDefinition,
  { from_agent: owner, to_agent: self, epoch, root }: HandoffEnvelope,
  ref: CaseRef,
  transfers: readonly Transfer[],
): CaseStanding | null {
  const hops = chainTo(transfers, ref, owner, epoch).map(({ key }) => key.sender);
  if (owner !== root && !hops.includes(root)) return null;
  // It would know a case that it opened or has owned.
  if (self === root || hops.includes(self)) return null;
  return {
    kind,
    status: 'open',
    owner,
    epoch,
    hops,
    tasksLeft: limits.maxTasks - hops.length,
    constraints: { caps: {}, prohibitions: [], operations: null },
  };
}

/** Of what a ledger knows, the receipts that an addressee can lack: what it accepted itself it knows, and all that came before. */
export function provenanceFor(addressee: string, transfers: readonly Transfer[]): string[] {
  const last = transfers.findLastIndex(({ toAgent }) => toAgent === addressee);
  return transfers.slice(last + 1).map(({ receipt }) => receipt);
}
