import { randomBytes } from 'node:crypto';
import type { Contract } from '../contract/index.js';
import {
  type AcceptanceKey,
  type CaseRef,
  type Clock,
  HoldfastError,
  handoffIdOf,
  type Limits,
  personOwner,
  sha256Hex,
  toUtc,
} from '../core/index.js';
import {
  type BuildInput,
  buildEnvelope,
  buildOfferMessage,
  checkCaseFile,
  type EnvelopeRegistry,
} from '../envelope/index.js';
import {
  buildReference,
  type EvidenceReference,
  type EvidenceStore,
  signEvidenceUrl,
} from '../evidence/index.js';
import { faultPoint } from '../faults/index.js';
import type { Approval, CaseRow, LedgerStore } from '../ledger/index.js';
import type { NodeIdentity, Peer, PeerDirectory, PeerKeySource } from '../trust/index.js';
import { signApproval } from './approval.js';
import type { Delivery } from './delivery.js';
import type { HandOffInput, HandOffResult } from './model.js';
import type { PeerClient } from './port.js';
import { checkPeer } from './preflight.js';
import { provenanceFor } from './provenance.js';

export interface SenderOptions {
  readonly identity: NodeIdentity;
  readonly ledger: LedgerStore;
  readonly peers: PeerDirectory;
  readonly keys: PeerKeySource;
  readonly client: PeerClient;
  readonly envelopes: EnvelopeRegistry;
  readonly evidence: {
    readonly store: EvidenceStore;
    readonly secret: Uint8Array;
    readonly urlTtlMs: number;
  };
  readonly limits: Limits;
  readonly clock: Clock;
  readonly delivery: Delivery;
  contract(id: string): Contract | null;
}

export interface Sender {
  /**
   * Whether a peer is who the configuration says and takes this contract.
   * @throws peer_unknown, contract_missing, peer_unreachable, peer_key_mismatch, peer_incompatible
   */
  checkPeer(to: string, contract: string): Promise<void>;
  /**
   * Offers a case to another agent and waits for the decision. Until an acceptance is verified the sender is the owner.
   * Everything that can be found wrong before the intent is stored is thrown and changes nothing; afterwards the outcome is returned.
   * @throws peer_unknown, peer_unreachable, peer_key_mismatch, peer_incompatible, contract_missing, evidence_file_missing,
   *   evidence_expires_early, personal_data, offer_open, effect_in_flight, case_changed, epoch_stale, not_owner, and what the contract finds missing
   */
  handOff(input: HandOffInput): Promise<HandOffResult>;
  /** Reads an offer back from the ledger and, while it is open, delivers the identical bytes. @throws offer_unknown */
  resend(key: AcceptanceKey): Promise<HandOffResult>;
  /** Closes an open offer in the ledger, so that a late arrival loses. Returns the decision that stands where it came too late. */
  withdraw(key: AcceptanceKey, reason: string): Promise<HandOffResult>;
}

export function createSender(options: SenderOptions): Sender {
  const { identity, ledger, clock } = options;
  const self = identity.url;

  function configured(to: string, contractId: string): { peer: Peer; contract: Contract } {
    const peer = options.peers.find(to);
    if (!peer) throw new HoldfastError('peer_unknown', `The peer ${to} is not configured.`);
    const contract = options.contract(contractId);
    if (!contract) throw new HoldfastError('contract_missing', `No contract ${contractId} is configured.`);
    return { peer, contract };
  }

  async function handOff(input: HandOffInput): Promise<HandOffResult> {
    faultPoint('S1.before');
    const { peer, contract } = configured(input.to, input.contract);
    const person = input.person === undefined ? undefined : personOwner(input.person, self);
    const row = await ownedCase(input.ref, person ?? self);
    const kind = await ledger.getKind(input.ref.tenant, row.kind);
    if (!kind?.contracts.includes(contract.id)) {
      throw new HoldfastError(
        'contract_missing',
        `Cases of kind ${row.kind} are not handed over under ${contract.id}.`,
      );
    }
    const caseFile = checkCaseFile(input.caseFile);
    if (caseFile.case_id !== row.ref.caseId || caseFile.kind !== row.kind) {
      throw new HoldfastError(
        'case_file_invalid',
        `The case file is not of ${row.ref.caseId}, kind ${row.kind}.`,
      );
    }
    if (row.hops.length + 1 > kind.limits.maxHops || row.tasksLeft < 1) {
      throw new HoldfastError('chain_limit', undefined, {
        data: { hops: row.hops.length + 1, max: kind.limits.maxHops, tasks_left: row.tasksLeft },
      });
    }
    await checkPeer(peer, contract, options);
    faultPoint('S1.after_check');

    const acceptBy = new Date(clock.now().getTime() + (input.acceptWithinMs ?? kind.limits.acceptWithinMs));
    const references = await referencesFor(input, acceptBy);
    const handoffId = handoffIdOf(row.ref.caseId, row.epoch);
    const key = { tenant: row.ref.tenant, root: row.ref.root, sender: self, handoffId };
    const attempt = (await ledger.lastAttempt(key)) + 1;
    const effects = await ledger.listEffects(row.ref);
    const provenance =
      kind.mode === 'separate'
        ? provenanceFor(peer.url, row.ref.root, await ledger.listTransfers(row.ref))
        : [];
    const content: BuildInput = {
      contract,
      caseFile,
      root: row.ref.root,
      incarnation: await ledger.incarnation(),
      handoff_id: handoffId,
      attempt,
      from_agent: self,
      to_agent: peer.url,
      epoch: row.epoch,
      references,
      effects: effects.map(({ key: effectKey, state, operation, amount }) => ({
        key: effectKey,
        status: state,
        operation,
        ...(amount ? { amount } : {}),
      })),
      accept_by: toUtc(acceptBy),
      chain: { hops: [...row.hops, self], tasks_left: row.tasksLeft },
      provenance,
      traceparent: input.traceparent ?? newTraceparent(),
      maxEnvelopeBytes: options.limits.maxEnvelopeBytes,
    };
    const { built, approval } = await approved(content, person);
    const holder = await options.delivery.prepare();
    faultPoint('S2.before_commit');
    const offer = await ledger.intendOffer({
      ref: row.ref,
      writer: person ?? self,
      epoch: row.epoch,
      attempt,
      toAgent: peer.url,
      contract: contract.id,
      skill: contract.skill.id,
      digest: built.digest,
      message: JSON.stringify(buildOfferMessage(built, options.envelopes)),
      acceptBy: toUtc(acceptBy),
      effects,
      withheld: built.withheld,
      loggable: built.loggable,
      holder,
      ...(approval === undefined ? {} : { approval }),
    });
    faultPoint('S2.after_commit');
    return options.delivery.deliver(offer);
  }

  /** What a person approves is the envelope as it is without their approval. */
  async function approved(content: BuildInput, person: string | undefined) {
    const built = await buildEnvelope(content);
    if (person === undefined) return { built };
    const signed = await signApproval(person, built, identity, clock.now());
    const provenance = [...(content.provenance ?? []), signed];
    const approval: Approval = { person, digest: sha256Hex(signed) };
    return { built: await buildEnvelope({ ...content, provenance }), approval };
  }

  async function ownedCase(ref: CaseRef, writer: string): Promise<CaseRow> {
    const row = await ledger.getCase(ref);
    if (!row) throw new HoldfastError('case_unknown', `There is no case ${ref.caseId} in this ledger.`);
    if (row.status === 'closed') throw new HoldfastError('case_closed');
    if (row.owner !== writer) {
      throw new HoldfastError('not_owner', `The case is owned by ${row.owner}, not by ${writer}.`, {
        data: { owner: row.owner, current: row.epoch },
      });
    }
    return row;
  }

  async function referencesFor(
    { to, evidence = [] }: HandOffInput,
    acceptBy: Date,
  ): Promise<EvidenceReference[]> {
    const expiresAt = new Date(clock.now().getTime() + options.evidence.urlTtlMs);
    if (expiresAt < acceptBy && evidence.length > 0) {
      throw new HoldfastError('evidence_expires_early', undefined, {
        data: { expires_at: toUtc(expiresAt), accept_by: toUtc(acceptBy) },
      });
    }
    const references: EvidenceReference[] = [];
    for (const { artifactId, version } of evidence) {
      const artifact = await options.evidence.store.find(artifactId, version);
      if (!artifact) {
        throw new HoldfastError(
          'evidence_file_missing',
          `There is no artifact ${artifactId} in the evidence store.`,
        );
      }
      const url = signEvidenceUrl(options.evidence.secret, {
        baseUrl: self,
        artifactId: artifact.artifactId,
        version: artifact.version,
        sha256: artifact.sha256,
        audience: to,
        expiresAt,
      });
      references.push(buildReference(artifact, url, expiresAt));
    }
    return references;
  }

  async function check(to: string, contractId: string): Promise<void> {
    const { peer, contract } = configured(to, contractId);
    await checkPeer(peer, contract, options);
  }

  const { resend, withdraw } = options.delivery;
  return { checkPeer: check, handOff, resend, withdraw };
}

/** W3C trace context for a chain that starts here. */
function newTraceparent(): string {
  return `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;
}
