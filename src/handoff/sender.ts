import { randomBytes } from 'node:crypto';
import type { Contract } from '../contract/index.js';
import {
  type AcceptanceKey,
  type CaseRef,
  type Clock,
  HoldfastError,
  handoffIdOf,
  type Limits,
  type Logger,
  personOwner,
  sha256Hex,
  toUtc,
} from '../core/index.js';
import {
  type BuildInput,
  type BuiltEnvelope,
  buildEnvelope,
  buildOfferMessage,
  buildThinEnvelope,
  type CaseFile,
  type EnvelopeRegistry,
  readdressEnvelope,
  readOffer,
  type ThinInput,
} from '../envelope/index.js';
import {
  buildReference,
  type EvidenceArtifact,
  type EvidenceReference,
  type EvidenceStore,
  signEvidenceUrl,
} from '../evidence/index.js';
import { faultPoint } from '../faults/index.js';
import type { Approval, CaseRow, KindDefinition, LedgerStore, OfferRow, PlanStep } from '../ledger/index.js';
import type { NodeIdentity, Peer, PeerDirectory, PeerKeySource } from '../trust/index.js';
import { signApproval } from './approval.js';
import { addresseesOf, createCandidates, keyOf, type NextOffer } from './candidates.js';
import { type CaseReader, readCase } from './case-reader.js';
import { answerQuestion } from './clarify.js';
import { contentOf } from './content.js';
import type { Delivery } from './delivery.js';
import type { AnswerInput, EscalateInput, HandOffInput, HandOffResult } from './model.js';
import type { PeerClient } from './port.js';
import { checkPeer, checkPermitted } from './preflight.js';
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
  readonly logger: Logger;
  /** Gives a case to the person named for it, when no candidate is left. */
  escalate(input: EscalateInput): Promise<CaseRow>;
  contract(id: string): Contract | null;
  /** Of cases of this kind. */
  reader(kind: string): CaseReader | null;
}

export interface Sender {
  /**
   * Whether a peer is who the configuration says and takes this contract.
   * @throws peer_unknown, contract_missing, peer_unreachable, peer_key_mismatch, peer_incompatible
   */
  checkPeer(to: string, contract: string): Promise<void>;
  /** Whether a case could be offered like that, before evidence of it is stored; changes nothing. @throws as `handOff`, but for what only the whole envelope shows */
  checkHandOff(input: HandOffInput): Promise<void>;
  /**
   * Offers a case to another agent and waits for the decision; of several, to the next once an offer is closed without an acceptance. Until
   * an acceptance is verified the sender is the owner.
   * Everything that can be found wrong before the intent is stored is thrown and changes nothing; afterwards the outcome is returned.
   * @throws peer_unknown, peer_unreachable, peer_key_mismatch, peer_incompatible, contract_missing, evidence_file_missing,
   *   evidence_expires_early, evidence_revoked, personal_data, offer_open, effect_in_flight, case_changed, epoch_stale, not_owner, and what the
   *   contract finds missing; under a thin contract thin_separate, reader_missing, reader_failed, records_disagree
   */
  handOff(input: HandOffInput): Promise<HandOffResult>;
  /** Answers what the receiver of an open offer asks. @throws offer_unknown, offer_decided, contract_missing, question_unknown, answer_invalid, personal_data, duplicate_conflict */
  answer(input: AnswerInput): Promise<HandOffResult>;
  /** Makes the next step of every plan of candidates whose offer is closed. Never fails because of one of them. */
  takeUpPlans(tenant: string): Promise<void>;
  /** Reads an offer back from the ledger and, while it is open, delivers the identical bytes. @throws offer_unknown */
  resend(key: AcceptanceKey): Promise<HandOffResult>;
  /** Closes an open offer, so that a late arrival loses, and ends the plan that it is of. Returns the decision that stands where it came too late. */
  withdraw(key: AcceptanceKey, reason: string): Promise<HandOffResult>;
}

export function createSender(options: SenderOptions): Sender {
  const { identity, ledger, clock } = options;
  const self = identity.url;

  function configured(to: string, contractId: string): Configured {
    const peer = options.peers.find(to);
    if (!peer) throw new HoldfastError('peer_unknown', `The peer ${to} is not configured.`);
    const contract = options.contract(contractId);
    if (!contract) throw new HoldfastError('contract_missing', `No contract ${contractId} is configured.`);
    return { peer, contract };
  }

  /** Everything that can be found wrong before an attempt is made. */
  async function consider(input: HandOffInput): Promise<Considered> {
    const addressees = addresseesOf(input.to);
    const [{ peer, contract }, ...others] = addressees.map((to) => configured(to, input.contract)) as [
      Configured,
      ...Configured[],
    ];
    for (const other of others) checkPermitted(other.peer, contract);
    const { escalateTo = null } = input;
    if (escalateTo !== null) personOwner(escalateTo, self);
    const isPlanned = others.length > 0 || escalateTo !== null;
    const person = input.person === undefined ? undefined : personOwner(input.person, self);
    if (person !== undefined) checkByPerson(contract, isPlanned);
    const row = await ownedCase(input.ref, person ?? self);
    const kind = await kindFor(row, contract);
    const caseFile = contentOf(input, { row, kind, contract, reader: options.reader(row.kind) });
    await checkPeer(peer, contract, options);
    return { addressees, peer, contract, escalateTo, isPlanned, person, row, kind, caseFile };
  }

  async function handOff(input: HandOffInput): Promise<HandOffResult> {
    faultPoint('S1.before');
    const { addressees, escalateTo, isPlanned, person, caseFile, ...to } = await consider(input);
    const { row, kind } = to;
    faultPoint('S1.after_check');

    const acceptWithinMs = input.acceptWithinMs ?? kind.limits.acceptWithinMs;
    const traceparent = input.traceparent ?? newTraceparent();
    const offer = await intend({
      ...{ ...to, acceptWithinMs, claims: true },
      evidence: input.evidence ?? [],
      ...(person === undefined ? {} : { person }),
      build: (parts) =>
        caseFile === null
          ? buildThin({ ...parts, traceparent }, row, kind)
          : buildEnvelope({ ...parts, caseFile, traceparent }),
      ...(isPlanned
        ? { step: (attempt: number) => planFrom(addressees, attempt, { escalateTo, acceptWithinMs }) }
        : {}),
    });
    const queued = input.waiting === 'queued';
    const result = await options.delivery.deliver(offer, queued);
    return isPlanned ? follow(result, queued) : result;
  }

  /** Goes on to the next candidate as long as this caller has something to wait for. */
  async function follow(result: HandOffResult, queued: boolean): Promise<HandOffResult> {
    if (result.state === 'open' || result.state === 'accepted') return result;
    const { ref, key } = result.offer;
    const next = await candidates.advance(ref, true);
    if (next !== null) return follow(await options.delivery.deliver(next, queued), queued);
    const plan = await ledger.getPlan(ref);
    // Another process was quicker with the step.
    if (plan?.state !== 'active' || plan.sender !== self || plan.attempt <= key.attempt) return result;
    return follow(await options.delivery.resend(keyOf(plan)), queued);
  }

  /** The content is that of the attempt before, which holds nothing but what may leave. */
  async function offerNext({ plan, before, to, step, claims }: NextOffer): Promise<OfferRow> {
    const { peer, contract } = configured(to, before.contract);
    const row = await ownedCase(plan.ref, self);
    const kind = await kindFor(row, contract);
    await checkPeer(peer, contract, options);
    const { envelope } = readOffer(JSON.parse(before.message), options.envelopes, options.limits);
    const evidence = envelope.references.map(({ artifact_id: artifactId, version }) => ({
      artifactId,
      version,
    }));
    return intend({
      ...{ row, kind, peer, contract, evidence, claims, step },
      acceptWithinMs: plan.acceptWithinMs,
      build: (parts) =>
        envelope.thin
          ? buildThin({ ...parts, traceparent: envelope.trace.traceparent }, row, kind)
          : readdressEnvelope({ ...parts, before: envelope, withheld: before.withheld }),
    });
  }

  /** @throws contract_missing, chain_limit */
  async function kindFor(row: CaseRow, contract: Contract): Promise<KindDefinition> {
    const kind = await ledger.getKind(row.ref.tenant, row.kind);
    if (!kind?.contracts.includes(contract.id)) {
      throw new HoldfastError(
        'contract_missing',
        `Cases of kind ${row.kind} are not handed over under ${contract.id}.`,
      );
    }
    if (row.hops.length + 1 > kind.limits.maxHops || row.tasksLeft < 1) {
      throw new HoldfastError('chain_limit', undefined, {
        data: { hops: row.hops.length + 1, max: kind.limits.maxHops, tasks_left: row.tasksLeft },
      });
    }
    return kind;
  }

  /** Makes one attempt, and stores it before anything leaves. */
  async function intend(input: AttemptInput): Promise<OfferRow> {
    const { row, kind, peer, contract } = input;
    const acceptBy = new Date(clock.now().getTime() + input.acceptWithinMs);
    const references = await referencesFor(peer.url, input.evidence, acceptBy);
    const handoffId = handoffIdOf(row.ref.caseId, row.epoch);
    const key = { tenant: row.ref.tenant, root: row.ref.root, sender: self, handoffId };
    const attempt = (await ledger.lastAttempt(key)) + 1;
    const effects = await ledger.listEffects(row.ref);
    const parts: EnvelopeParts = {
      contract,
      root: row.ref.root,
      incarnation: (await ledger.getIncarnation(self))?.incarnation ?? (await ledger.incarnation()),
      handoff_id: handoffId,
      attempt,
      from_agent: self,
      to_agent: peer.url,
      epoch: row.epoch,
      accept_by: toUtc(acceptBy),
      chain: { hops: [...row.hops, self], tasks_left: row.tasksLeft },
      references,
      effects: effects.map(({ key: effectKey, state, operation, amount }) => ({
        key: effectKey,
        status: state,
        operation,
        ...(amount ? { amount } : {}),
      })),
      provenance:
        kind.mode === 'separate'
          ? provenanceFor(peer.url, row.ref.root, await ledger.listTransfers(row.ref))
          : [],
      maxEnvelopeBytes: options.limits.maxEnvelopeBytes,
    };
    const { built, approval } = await approved(input, parts);
    const holder = input.claims ? await options.delivery.prepare() : undefined;
    faultPoint('S2.before_commit');
    const offer = await ledger.intendOffer({
      ref: row.ref,
      writer: input.person ?? self,
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
      ...(approval === undefined ? {} : { approval }),
      ...(input.step === undefined ? {} : { plan: input.step(attempt) }),
      ...(holder === undefined ? {} : { holder }),
    });
    faultPoint('S2.after_commit');
    return offer;
  }

  /** Nothing of the case leaves; it is looked at all the same, so that what the receiver would refuse is not offered. */
  async function buildThin(said: Omit<ThinInput, 'case_id' | 'kind'>, row: CaseRow, kind: KindDefinition) {
    const { loggable } = await readCase({
      ...row,
      kind,
      contract: said.contract,
      reader: options.reader(row.kind),
    });
    const built = buildThinEnvelope({ ...said, case_id: row.ref.caseId, kind: row.kind });
    return { ...built, withheld: [], loggable };
  }

  /** What a person approves is the envelope as it is without their approval. */
  async function approved(
    { person, build }: AttemptInput,
    parts: EnvelopeParts,
  ): Promise<{ readonly built: BuiltEnvelope; readonly approval?: Approval }> {
    const built = await build(parts);
    if (person === undefined) return { built };
    const signed = await signApproval(person, built, identity, clock.now());
    const provenance = [...parts.provenance, signed];
    const approval: Approval = { person, digest: sha256Hex(signed) };
    return { built: await build({ ...parts, provenance }), approval };
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
    to: string,
    evidence: AttemptInput['evidence'],
    acceptBy: Date,
  ): Promise<EvidenceReference[]> {
    const expiresAt = new Date(clock.now().getTime() + options.evidence.urlTtlMs);
    if (expiresAt < acceptBy && evidence.length > 0) {
      throw new HoldfastError('evidence_expires_early', undefined, {
        data: { expires_at: toUtc(expiresAt), accept_by: toUtc(acceptBy) },
      });
    }
    const references: EvidenceReference[] = [];
    for (const named of evidence) {
      const artifact = await offerable(named);
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

  /** @throws evidence_file_missing, evidence_revoked */
  async function offerable({ artifactId, version }: Named): Promise<EvidenceArtifact> {
    const artifact = await options.evidence.store.find(artifactId, version);
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

  async function check(to: string, contractId: string): Promise<void> {
    const { peer, contract } = configured(to, contractId);
    await checkPeer(peer, contract, options);
  }

  async function withdraw(key: AcceptanceKey, reason: string): Promise<HandOffResult> {
    const offer = await ledger.getOffer(key);
    if (offer !== null) await candidates.end(key, offer.ref, 'withdrawn');
    return options.delivery.withdraw(key, reason);
  }

  const candidates = createCandidates({ ...options, self, offer: offerNext });
  return {
    checkPeer: check,
    checkHandOff: async (input) => {
      await consider(input);
      for (const named of input.evidence ?? []) await offerable(named);
    },
    handOff,
    answer: (input) => answerQuestion(input, options),
    takeUpPlans: candidates.takeUp,
    resend: options.delivery.resend,
    withdraw,
  };
}

interface Configured {
  readonly peer: Peer;
  readonly contract: Contract;
}

/** What is to be offered to whom, once nothing was found wrong with it. */
interface Considered extends Configured {
  readonly addressees: readonly string[];
  readonly escalateTo: string | null;
  readonly isPlanned: boolean;
  /** The owner, where it is a person of this node. */
  readonly person: string | undefined;
  readonly row: CaseRow;
  readonly kind: KindDefinition;
  readonly caseFile: CaseFile | null;
}

type Named = NonNullable<HandOffInput['evidence']>[number];

/** What every envelope of an attempt is made of, besides its content. */
type EnvelopeParts = Omit<BuildInput, 'caseFile' | 'traceparent' | 'provenance'> & {
  readonly provenance: readonly string[];
};

interface AttemptInput extends Configured {
  readonly row: CaseRow;
  readonly kind: KindDefinition;
  readonly evidence: readonly Named[];
  readonly acceptWithinMs: number;
  /** The owner, where it is a person of this node. */
  readonly person?: string;
  readonly step?: (attempt: number) => PlanStep;
  /** Whether this process delivers it. */
  readonly claims: boolean;
  build(parts: EnvelopeParts): Promise<BuiltEnvelope>;
}

/** A person approves of one envelope to one agent, and the envelope carries it. @throws usage */
function checkByPerson({ thin, id }: Contract, isPlanned: boolean): void {
  if (isPlanned) {
    throw new HoldfastError(
      'usage',
      'What a person owns is offered to one agent at a time, and nobody else gets it: they approve of each offer.',
    );
  }
  if (thin !== true) return;
  throw new HoldfastError(
    'usage',
    `${id} is thin, and carries no approval of a person: give the case back to the agent first.`,
  );
}

/** A plan at its first candidate. */
function planFrom(
  addressees: readonly string[],
  attempt: number,
  plan: Pick<PlanStep, 'escalateTo' | 'acceptWithinMs'>,
): PlanStep {
  const candidates = addressees.map((agent, index) => ({
    agent,
    attempt: index === 0 ? attempt : null,
    passed: null,
  }));
  return { from: null, candidates, ...plan };
}

/** W3C trace context for a chain that starts here. */
function newTraceparent(): string {
  return `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;
}
