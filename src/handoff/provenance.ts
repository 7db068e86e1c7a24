import { actsFor, type CaseRef, HoldfastError, handoffIdOf, parsePerson } from '../core/index.js';
import type { HandoffEnvelope } from '../envelope/index.js';
import {
  beginsAt,
  type CaseRow,
  chainTo,
  isInside,
  type KindDefinition,
  type Transfer,
} from '../ledger/index.js';
import {
  isApproval,
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
  options: ProvenanceOptions,
): Promise<Transfer[]> {
  const transfers: Transfer[] = [];
  for (const [at, receipt] of envelope.provenance.entries()) {
    if (!isApproval(receipt)) transfers.push(await verifyTransfer(receipt, ref, options, `provenance.${at}`));
  }
  return transfers;
}

/**
 * One change of owner of this case, as its receipt proves it.
 * @throws provenance_unknown, provenance_invalid, both naming `path`; peer_unreachable
 */
export async function verifyTransfer(
  receipt: string,
  ref: CaseRef,
  { identity, peers, keys }: ProvenanceOptions,
  path: string,
): Promise<Transfer> {
  const issuer = issuerOf(receipt) ?? '';
  const isOwn = issuer === identity.url;
  const peer = isOwn ? selfAsPeer(identity) : peers.find(issuer);
  if (peer === null) {
    throw new HoldfastError('provenance_unknown', undefined, {
      fields: [{ path, problem: 'is of no agent that is configured here' }],
    });
  }
  const ownKeys: PeerKeySource = { keysOf: async () => identity.jwks().keys };
  const { claims, key } = await verifyReceipt(receipt, peer, isOwn ? ownKeys : keys).catch(
    (error: unknown) => {
      throw isReceiptInvalid(error)
        ? invalid(path, 'does not verify with the key of its issuer', error)
        : error;
    },
  );
  const { from_agent: sender, to_agent: toAgent, handoff_id: handoffId, attempt } = claims;
  // A person counts only within the node that signs for them.
  const isBetween = actsFor(sender) === peer.url || (parsePerson(sender) ?? parsePerson(toAgent)) === null;
  const isStep =
    claims.iss === peer.url &&
    actsFor(toAgent) === peer.url &&
    isBetween &&
    claims.root === ref.root &&
    claims.case_id === ref.caseId &&
    sender !== toAgent &&
    claims.new_epoch === claims.old_epoch + 1 &&
    handoffId === handoffIdOf(ref.caseId, claims.old_epoch);
  if (!isStep) throw invalid(path, 'is no change of owner of this case');
  return {
    key: { tenant: ref.tenant, root: ref.root, sender, handoffId, attempt },
    ref,
    toAgent,
    oldEpoch: claims.old_epoch,
    newEpoch: claims.new_epoch,
    digest: claims.digest,
    receipt,
    receiptKey: JSON.stringify(key),
  };
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
  for (const transfer of transfers) {
    const { key, toAgent, newEpoch } = transfer;
    if (newEpoch <= standing.epoch) continue;
    if (!beginsAt(standing.owner, standing.epoch, transfer)) break;
    if (isInside(transfer)) {
      standing = { ...standing, owner: toAgent, epoch: newEpoch };
      continue;
    }
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
  const chain = chainTo(transfers, ref, owner, epoch);
  const hops = chain.filter((transfer) => !isInside(transfer)).map(({ key }) => key.sender);
  if (owner !== root && !hops.includes(root)) return null;
  // It would know a case that it opened or has owned.
  if (self === root || hops.includes(self)) return null;
  return {
    kind,
    status: 'open',
    owner: chain.at(-1)?.toAgent ?? owner,
    epoch,
    hops,
    tasksLeft: limits.maxTasks - hops.length,
    constraints: { caps: {}, prohibitions: [], operations: null },
  };
}

/**
 * Of what a ledger knows, the receipts that an addressee can lack: what it accepted itself it knows, and all that came before. Of what passed
 * between an agent and its persons the last says it all, and of what did so at the root before the first handover nothing is asked.
 */
export function provenanceFor(addressee: string, root: string, transfers: readonly Transfer[]): string[] {
  const last = transfers.findLastIndex((transfer) => !isInside(transfer) && transfer.toAgent === addressee);
  const first = transfers.findIndex((transfer) => !isInside(transfer));
  const needed = transfers.slice(last + 1).filter((transfer, at, rest) => {
    const next = rest[at + 1];
    if (!isInside(transfer) || next === undefined) return true;
    const isBefore = last + 1 + at < first && actsFor(transfer.toAgent) === root;
    return !isInside(next) && !isBefore;
  });
  return needed.map(({ receipt }) => receipt);
}
