import {
  type AcceptanceCheck,
  type Contract,
  checkContract,
  type OfferView,
  type VerifiedEvidence,
} from '../contract/index.js';
import { type Clock, compareAmounts, HoldfastError, type Limits, parsePerson } from '../core/index.js';
import { type HandoffEnvelope, loggableOf } from '../envelope/index.js';
import {
  checkReference,
  type EvidenceDownloader,
  type EvidenceStore,
  receiveEvidence,
} from '../evidence/index.js';
import { faultPoint } from '../faults/index.js';
import {
  type Approval,
  type Constraints,
  judgeOwnership,
  type KindDefinition,
  type LedgerStore,
  type OfferStanding,
  type Transfer,
} from '../ledger/index.js';
import { mayPass } from '../trust/index.js';
import type { Delivery } from './answers.js';
import { approvalIn } from './approval.js';
import { type CaseReader, readCase } from './case-reader.js';
import { type ContradictionOptions, reportContradiction } from './contradiction.js';
import type { ReceivedContract } from './model.js';
import { judgeArtifact, ofReference, verifiedEvidence } from './named-evidence.js';
import { type CaseStanding, type ProvenanceOptions, standingOf, verifyProvenance } from './provenance.js';
import { type Passed, runCheck } from './verdict.js';

/** An offer whose document has been read. */
export interface OfferInHand extends Delivery {
  readonly envelope: HandoffEnvelope;
  readonly canonical: string;
}

export interface JudgeOptions extends ProvenanceOptions, ContradictionOptions {
  readonly ledger: Pick<LedgerStore, 'listAwaited' | 'getIncarnation'> & ContradictionOptions['ledger'];
  readonly evidence: { readonly store: EvidenceStore; readonly downloader: EvidenceDownloader };
  readonly limits: Limits;
  readonly clock: Clock;
  received(contract: string): ReceivedContract | null;
  /** Of cases of this kind. */
  reader(kind: string): CaseReader | null;
}

/** What stands behind an offer once its sender's permission has been looked at. */
export interface Permitted {
  readonly received: ReceivedContract;
  readonly kind: KindDefinition;
}

/** The same once the chain and the ownership have been looked at, too. */
export interface Standing extends Permitted {
  readonly case: CaseStanding;
  /** What the envelope proves of changes of owner elsewhere; empty in a shared kind. */
  readonly provenance: readonly Transfer[];
  /** Of the person who owns it, as far as their agent carries one. */
  readonly approval?: Approval;
}

/**
 * Under which incarnation the decision is made. A peer that can hold a receipt of this agent for the very offer is heard first: a
 * rejection, too, would be a second decision. @throws peers_unanswered
 */
export async function incarnationFor(
  { principal }: OfferInHand,
  { kind, incarnation }: OfferStanding,
  { identity, ledger }: JudgeOptions,
): Promise<string> {
  if (kind?.mode !== 'separate') return incarnation;
  const awaited = await ledger.listAwaited(identity.url);
  const its = awaited.find(({ peer }) => peer === principal.agent);
  if (its?.state === 'waiting') throw new HoldfastError('peers_unanswered');
  return (await ledger.getIncarnation(identity.url))?.incarnation ?? incarnation;
}

/** Permission and the chain's limits, from the configuration alone. @throws the rejection's code */
export function judgePermission(
  { envelope, principal }: OfferInHand,
  { kind }: OfferStanding,
  options: JudgeOptions,
): Permitted {
  const received = options.received(envelope.contract);
  if (!received) throw new HoldfastError('contract_unknown');
  if (received.contract.skill.id !== envelope.skill) throw new HoldfastError('skill_unknown');
  if ((received.contract.thin === true) !== (envelope.thin === true))
    throw new HoldfastError('form_mismatch');
  const peer = options.peers.find(principal.agent);
  if (!peer || !mayPass(peer, envelope.contract, envelope.skill)) throw new HoldfastError('peer_not_allowed');
  if (!kind) throw new HoldfastError('kind_unknown');
  if (!kind.contracts.includes(envelope.contract)) {
    throw new HoldfastError('contract_unknown', 'The kind of case is not handed over under this contract.');
  }
  if (envelope.thin && kind.mode === 'separate') throw new HoldfastError('thin_separate');
  judgeLimits(envelope, kind);
  return { received, kind };
}

/**
 * Owner, epoch, chain and time, as the ledger holds them and as the envelope proves that they have changed since. Only to verify a receipt
 * of another agent can this need the network, for its keys.
 * @throws the rejection's code; peer_unreachable; case_quarantined where what is refused proves that two may own the case
 */
export async function judgeStanding(
  offer: OfferInHand,
  found: OfferStanding,
  permitted: Permitted,
  options: JudgeOptions,
): Promise<Standing> {
  const { envelope, principal, ref } = offer;
  const { kind } = permitted;
  const isSeparate = kind.mode === 'separate';
  const provenance = isSeparate ? await verifyProvenance(envelope, ref, options) : [];
  const row = standingOf(found.case, kind, envelope, ref, provenance);
  const refusal = judgeOwnership(row, envelope.epoch, principal.agent);
  if (refusal) {
    if (isSeparate) await reportContradiction(offer, provenance, options);
    throw new HoldfastError(refusal.code, refusal.message, { data: refusal.data });
  }
  const approval = await approvalIn(offer, options);
  if (approval?.person !== (row !== null && parsePerson(row.owner) !== null ? row.owner : undefined)) {
    const message = 'What a person owns is handed over with their approval, and nothing else is.';
    throw new HoldfastError('not_owner', message);
  }
  if (!row || row.kind !== envelope.kind)
    throw new HoldfastError('kind_unknown', 'The case is of another kind.');
  judgeChain(envelope, row);
  if (options.clock.now() > new Date(envelope.accept_by)) throw new HoldfastError('offer_expired');
  return { ...permitted, case: row, provenance, ...(approval === undefined ? {} : { approval }) };
}

/** @throws chain_limit where the case has gone far enough, as the envelope itself says */
function judgeLimits({ chain }: HandoffEnvelope, { limits }: KindDefinition): void {
  if (chain.hops.length > limits.maxHops) {
    throw new HoldfastError('chain_limit', undefined, {
      data: { hops: chain.hops.length, max: limits.maxHops },
    });
  }
}

/** @throws chain_mismatch, chain_limit: the ledger's word on the chain, which an envelope cannot shorten */
function judgeChain(envelope: HandoffEnvelope, row: CaseStanding): void {
  const { hops, tasks_left: tasksLeft } = envelope.chain;
  const expected = [...row.hops, envelope.from_agent];
  if (hops.length !== expected.length || hops.some((hop, i) => hop !== expected[i])) {
    throw mismatch('chain.hops', 'must be the agents that the ledger holds, the sender last');
  }
  if (tasksLeft > row.tasksLeft) throw mismatch('chain.tasks_left', `must be at most ${row.tasksLeft}`);
  if (row.tasksLeft < 1)
    throw new HoldfastError('chain_limit', undefined, { data: { tasks_left: row.tasksLeft } });
  if (tasksLeft < 1) throw mismatch('chain.tasks_left', 'must be at least 1: this handover counts');
}

function mismatch(path: string, problem: string): HoldfastError {
  return new HoldfastError('chain_mismatch', undefined, { fields: [{ path, problem }] });
}

/** What is known of the case under its contract, before any evidence is fetched. */
export interface Content {
  /** With what a thin one leaves to the system of record. */
  readonly envelope: HandoffEnvelope;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly constraints: Constraints;
  readonly loggable: Readonly<Record<string, unknown>>;
}

/** All of the contract that needs neither the evidence nor anybody's own check. @throws the rejection's code; reader_missing, reader_failed */
export async function judgeContent(
  offer: OfferInHand,
  standing: Standing,
  options: JudgeOptions,
): Promise<Content> {
  const { envelope } = offer;
  if (envelope.thin) return judgeThin(offer, standing, options);
  const { contract } = standing.received;
  const facts = await checkContract(contract, envelope);
  const constraints = agree(envelope, contract, standing.case, standing.kind);
  judgeArtifact(envelope);
  const bounds = boundsOf(envelope, options);
  for (const [at, reference] of envelope.references.entries()) {
    await ofReference(at, async () => checkReference(reference, bounds));
  }
  return { envelope, facts, constraints, loggable: loggableOf(envelope, contract) };
}

/** The same of a case that both sides have: what the envelope would have said is read in the system of record, as this agent. */
async function judgeThin(
  { envelope, ref }: OfferInHand,
  { received: { contract }, kind, case: row }: Standing,
  { reader }: JudgeOptions,
): Promise<Content> {
  const read = await readCase({
    ref,
    kind,
    contract,
    constraints: row.constraints,
    reader: reader(kind.kind),
  });
  const { facts, outputs, constraints, loggable } = read;
  return {
    envelope: { ...envelope, facts, constraints },
    facts: outputs,
    constraints: { ...constraints, operations: contract.operations },
    loggable,
  };
}

function boundsOf({ accept_by: acceptBy }: HandoffEnvelope, { limits, clock }: JudgeOptions) {
  return { limits, now: clock.now(), acceptBy: new Date(acceptBy) };
}

/** What was found out about an offer by the time its checks run. */
export interface Checked {
  readonly standing: Standing;
  readonly content: Content;
  readonly clarifications: OfferView['clarifications'];
  /** Whether its evidence may have been kept before. */
  readonly again: boolean;
}

/** The evidence, and then the checks: the contract's, and the node's own where it is among them. The first that does not accept is the verdict. */
export async function runChecks(
  { standing, content, clarifications, again }: Checked,
  checks: readonly (AcceptanceCheck | undefined)[],
  options: JudgeOptions,
): Promise<Passed> {
  const { contract } = standing.received;
  const { envelope } = content;
  const bounds = { ...boundsOf(envelope, options), again };
  const evidence: VerifiedEvidence[] = [];
  for (const [at, reference] of envelope.references.entries()) {
    const { artifact_id: artifactId, version } = reference;
    const kept = await ofReference(at, () => receiveEvidence(reference, { ...options.evidence, ...bounds }));
    faultPoint('R2.after_fetch');
    evidence.push(verifiedEvidence({ ...kept, artifactId, version }, options.evidence.store));
  }
  const view: OfferView = {
    caseId: envelope.case_id,
    root: envelope.root,
    fromAgent: envelope.from_agent,
    epoch: envelope.epoch,
    facts: content.facts,
    envelope: { ...envelope },
    evidence,
    clarifications,
  };
  for (const check of checks) {
    const verdict = check === undefined ? null : await runCheck(check, view, contract);
    if (verdict !== null && verdict.verdict !== 'accept') return verdict;
  }
  return { verdict: 'accept' };
}

/**
 * What the envelope and the contract agree on; the ledger keeps the narrower of this and what stood before.
 * @throws constraint_invalid where the envelope claims a wider cap than the policy or an earlier agreement
 */
function agree(
  envelope: HandoffEnvelope,
  contract: Contract,
  row: CaseStanding,
  kind: KindDefinition,
): Constraints {
  const { caps, prohibitions } = envelope.constraints;
  for (const [operation, cap] of Object.entries(caps)) {
    for (const bounds of [kind.policy.caps, row.constraints.caps]) {
      const bound = Object.hasOwn(bounds, operation) ? bounds[operation] : undefined;
      if (bound && (bound.currency !== cap.currency || compareAmounts(cap.amount, bound.amount) > 0)) {
        throw new HoldfastError('constraint_invalid', undefined, {
          fields: [
            {
              path: `constraints.caps.${operation}`,
              problem: 'wider than the policy or an earlier agreement',
            },
          ],
        });
      }
    }
  }
  return { caps, prohibitions, operations: contract.operations };
}
