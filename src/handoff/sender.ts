import { randomBytes } from 'node:crypto';
import type { Contract } from '../contract/index.js';
import { type AcceptanceKey, type CaseRef, HoldfastError, type Logger, personOwner } from '../core/index.js';
import { buildEnvelope, type CaseFile, readdressEnvelope, readOffer } from '../envelope/index.js';
import { faultPoint } from '../faults/index.js';
import type { CaseRow, KindDefinition, OfferRow } from '../ledger/index.js';
import type { PeerDirectory, PeerKeySource } from '../trust/index.js';
import { type AttemptOptions, buildThin, type Configured, intendAttempt } from './attempt.js';
import { addresseesOf, createCandidates, keyOf, type NextOffer, planFrom } from './candidates.js';
import type { CaseReader } from './case-reader.js';
import { answerQuestion } from './clarify.js';
import { contentOf } from './content.js';
import type { AnswerInput, EscalateInput, HandOffInput, HandOffResult } from './model.js';
import { offerable } from './offered-evidence.js';
import type { PeerClient } from './port.js';
import { checkPeer, checkPermitted } from './preflight.js';

export interface SenderOptions extends AttemptOptions {
  readonly peers: PeerDirectory;
  readonly keys: PeerKeySource;
  readonly client: PeerClient;
  readonly logger: Logger;
  /** Gives a case to the person named for it, when no candidate is left. */
  escalate(input: EscalateInput): Promise<CaseRow>;
  contract(id: string): Contract | null;
  /** Of cases of this kind. */
  reader(kind: string): CaseReader | null;
  /** How such a case is handed over where the call does not say. */
  waiting(kind: string): 'blocking' | 'queued';
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
  const { identity, ledger } = options;
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
    const offer = await intendAttempt(
      {
        ...{ ...to, acceptWithinMs, claims: true },
        evidence: input.evidence ?? [],
        ...(person === undefined ? {} : { person }),
        build: (parts) =>
          caseFile === null
            ? buildThin({ ...parts, traceparent }, { row, kind, reader: options.reader(row.kind) })
            : buildEnvelope({ ...parts, caseFile, traceparent }),
        ...(isPlanned
          ? { step: (attempt: number) => planFrom(addressees, attempt, { escalateTo, acceptWithinMs }) }
          : {}),
      },
      options,
    );
    const queued = (input.waiting ?? options.waiting(row.kind)) === 'queued';
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
    return intendAttempt(
      {
        ...{ row, kind, peer, contract, evidence, claims, step },
        acceptWithinMs: plan.acceptWithinMs,
        build: (parts) =>
          envelope.thin
            ? buildThin(
                { ...parts, traceparent: envelope.trace.traceparent },
                { row, kind, reader: options.reader(row.kind) },
              )
            : readdressEnvelope({ ...parts, before: envelope, withheld: before.withheld }),
      },
      options,
    );
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
      for (const named of input.evidence ?? []) await offerable(named, options.evidence.store);
    },
    handOff,
    answer: (input) => answerQuestion(input, options),
    takeUpPlans: candidates.takeUp,
    resend: options.delivery.resend,
    withdraw,
  };
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

/** W3C trace context for a chain that starts here. */
function newTraceparent(): string {
  return `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;
}
