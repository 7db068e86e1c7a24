import type { Contract } from '../contract/index.js';
import { type Clock, handoffIdOf, type Limits, sha256Hex, toUtc } from '../core/index.js';
import {
  type BuildInput,
  type BuiltEnvelope,
  buildOfferMessage,
  buildThinEnvelope,
  type EnvelopeRegistry,
  type ThinInput,
} from '../envelope/index.js';
import { faultPoint } from '../faults/index.js';
import type { Approval, CaseRow, KindDefinition, LedgerStore, OfferRow, PlanStep } from '../ledger/index.js';
import type { NodeIdentity, Peer } from '../trust/index.js';
import { signApproval } from './approval.js';
import { type CaseReader, readCase } from './case-reader.js';
import type { Delivery } from './delivery.js';
import { type NamedEvidence, type OfferedEvidence, referencesFor } from './offered-evidence.js';
import { provenanceFor } from './provenance.js';

export interface AttemptOptions {
  readonly identity: NodeIdentity;
  readonly ledger: LedgerStore;
  readonly envelopes: EnvelopeRegistry;
  readonly evidence: OfferedEvidence;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly delivery: Delivery;
}

/** A peer and a contract that are configured here. */
export interface Configured {
  readonly peer: Peer;
  readonly contract: Contract;
}

/** What every envelope of an attempt is made of, besides its content. */
type EnvelopeParts = Omit<BuildInput, 'caseFile' | 'traceparent' | 'provenance'> & {
  readonly provenance: readonly string[];
};

interface AttemptInput extends Configured {
  readonly row: CaseRow;
  readonly kind: KindDefinition;
  readonly evidence: readonly NamedEvidence[];
  readonly acceptWithinMs: number;
  /** The owner, where it is a person of this node. */
  readonly person?: string;
  readonly step?: (attempt: number) => PlanStep;
  /** Whether this process delivers it. */
  readonly claims: boolean;
  build(parts: EnvelopeParts): Promise<BuiltEnvelope>;
}

/** Makes one attempt, and stores it before anything leaves. */
export async function intendAttempt(input: AttemptInput, options: AttemptOptions): Promise<OfferRow> {
  const { row, kind, peer, contract } = input;
  const { ledger, clock } = options;
  const self = options.identity.url;
  const acceptBy = new Date(clock.now().getTime() + input.acceptWithinMs);
  const references = await referencesFor(
    input.evidence,
    { self, to: peer.url, acceptBy },
    options.evidence,
    clock,
  );
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
  const { built, approval } = await approved(input, parts, options);
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
export async function buildThin(
  said: Omit<ThinInput, 'case_id' | 'kind'>,
  { row, kind, reader }: Pick<AttemptInput, 'row' | 'kind'> & { readonly reader: CaseReader | null },
) {
  const { loggable } = await readCase({
    ...row,
    kind,
    contract: said.contract,
    reader,
  });
  const built = buildThinEnvelope({ ...said, case_id: row.ref.caseId, kind: row.kind });
  return { ...built, withheld: [], loggable };
}

/** What a person approves is the envelope as it is without their approval. */
async function approved(
  { person, build }: AttemptInput,
  parts: EnvelopeParts,
  { identity, clock }: AttemptOptions,
): Promise<{ readonly built: BuiltEnvelope; readonly approval?: Approval }> {
  const built = await build(parts);
  if (person === undefined) return { built };
  const signed = await signApproval(person, built, identity, clock.now());
  const provenance = [...parts.provenance, signed];
  const approval: Approval = { person, digest: sha256Hex(signed) };
  return { built: await build({ ...parts, provenance }), approval };
}
