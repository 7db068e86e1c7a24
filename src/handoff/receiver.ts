import { type Contract, checkAnswer } from '../contract/index.js';
import {
  type Clock,
  ERROR_TABLE,
  HoldfastError,
  isErrorCode,
  isHoldfastError,
  type Limits,
  type Logger,
  toUtc,
} from '../core/index.js';
import { type EnvelopeRegistry, loggableOf, readAnswer, readOffer, readOfferKey } from '../envelope/index.js';
import type { EvidenceDownloader, EvidenceStore } from '../evidence/index.js';
import { faultPoint } from '../faults/index.js';
import type {
  DeferResult,
  LedgerStore,
  OfferOrigin,
  OfferStanding,
  PendingOffer,
  WorkItem,
} from '../ledger/index.js';
import type { Message, Task } from '../protocol/index.js';
import type { NodeIdentity, PeerDirectory, PeerKeySource, Principal } from '../trust/index.js';
import {
  ContractRefusal,
  type Delivery,
  decisionTask,
  keyText,
  type Rejection,
  rejectionPart,
} from './answers.js';
import { createByPerson } from './by-person.js';
import type { CaseReader } from './case-reader.js';
import { createDecisions } from './decisions.js';
import {
  incarnationFor,
  judgeContent,
  judgePermission,
  judgeStanding,
  type OfferInHand,
  runChecks,
} from './judge.js';
import { Lanes } from './lanes.js';
import type { Lease } from './lease.js';
import type { ReceivedContract } from './model.js';
import { News } from './news.js';
import { beforeItExpires, clarificationsOf, createPending, isAbout } from './pending.js';
import type { ReceiveOptions, Receiver } from './port.js';
import type { Passed } from './verdict.js';

export interface ReceiverOptions {
  readonly identity: NodeIdentity;
  readonly ledger: LedgerStore;
  readonly lease: Pick<Lease, 'holder' | 'claimPending'>;
  readonly peers: PeerDirectory;
  readonly keys: PeerKeySource;
  readonly envelopes: EnvelopeRegistry;
  readonly evidence: { readonly store: EvidenceStore; readonly downloader: EvidenceDownloader };
  readonly limits: Limits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** `name/version` -> what is accepted here. */
  received(contract: string): ReceivedContract | null;
  /** Of cases of this kind. */
  reader(kind: string): CaseReader | null;
  /** Called once an acceptance has committed and its answer can leave. */
  onAccepted(item: WorkItem): void;
}

/** What a delivery came to: the task of a decision, or an offer that is not decided yet. */
type Outcome = { readonly task: Task } | { readonly pending: PendingOffer };

/** Of one offer, where its contract does not say. */
const MAX_QUESTIONS = 3;

/**
 * The receiving pipeline: every offer is untrusted input and is judged from cheap to dear, documents before policy before the network;
 * ownership is compared again inside the acceptance transaction. A verdict is stored before it is answered. Whatever is thrown
 * decided nothing and leaves the offer open.
 */
export function createReceiver(options: ReceiverOptions): Receiver {
  const { identity, ledger, clock, envelopes, limits } = options;
  const lanes = new Lanes();
  const news = new News();
  const decisions = createDecisions({ ...options, news });
  const pending = createPending({ ...options, news, judge: judgeStored });

  async function receive(
    message: Message,
    principal: Principal,
    { returnImmediately = false }: ReceiveOptions = {},
  ): Promise<Task> {
    let read: ReturnType<typeof readOffer>;
    try {
      read = readOffer(message, envelopes, limits);
    } catch (error) {
      return refuseUnread(message, principal, toRejection(error));
    }
    const offer = inHand(read, principal);
    const lane = keyText(offer.key);
    // Who does not wait for a decision does not wait for one that is being made either; nor where that is made of a stored offer.
    const stored = !returnImmediately && lanes.has(lane) ? await ledger.getPending(offer.key) : null;
    const outcome =
      returnImmediately || (stored !== null && stored.state !== 'decided')
        ? await take(offer, message, true)
        : await lanes.run(lane, () => take(offer, message, false));
    if ('task' in outcome) return outcome.task;
    return returnImmediately ? pending.taskNow(outcome.pending) : pending.join(outcome.pending);
  }

  async function take(offer: OfferInHand, message: Message, stores: boolean): Promise<Outcome> {
    faultPoint('R1.received');
    try {
      if (offer.envelope.to_agent !== identity.url) throw new HoldfastError('not_addressee');
      if (offer.envelope.from_agent !== offer.principal.agent) throw new HoldfastError('peer_mismatch');
      const found = await ledger.offerStanding(offer.key, offer.ref, offer.envelope.kind);
      if (found.decision) return { task: await decisions.answerStored(offer, found.decision) };
      if (found.pending !== null) return await alreadyStored(offer, found.pending);
      return await judge(offer, found, { message, before: null, stores });
    } catch (error) {
      return { task: await decisions.refuse(offer, toRejection(error), originOf(offer)) };
    }
  }

  async function alreadyStored(offer: OfferInHand, found: PendingOffer): Promise<Outcome> {
    if (found.digest !== offer.digest) {
      await ledger.recordDelivery(offer.key, offer.ref, offer.principal, offer.digest, 'delivery_conflict');
      return { task: await decisions.conflict(offer) };
    }
    return { pending: found };
  }

  /** `stores`: it is to be stored before anything that takes long. @throws the rejection's code, and what decides nothing */
  async function judge(
    offer: OfferInHand,
    found: OfferStanding,
    { message, before, stores }: { message: Message; before: PendingOffer | null; stores: boolean },
  ): Promise<Outcome> {
    const incarnation = await incarnationFor(offer, found, options);
    const permitted = judgePermission(offer, found, options);
    const standing = await judgeStanding(offer, found, permitted, options);
    faultPoint('R1.after_standing');
    const inTime = <T>(work: Promise<T>) => beforeItExpires(offer.envelope.accept_by, clock, work);
    const content = await inTime(judgeContent(offer, standing, options));
    if (stores) {
      const outcome = await deferred(offer, await pending.defer(offer, message, { verdict: null, before }));
      if ('pending' in outcome) pending.takeUp(outcome.pending);
      return outcome;
    }
    const { contract, handler } = permitted.received;
    const clarifications = before === null ? [] : await clarificationsOf(before, permitted.received);
    const checked = { standing, content, clarifications, again: before !== null };
    const checks = [contract.accept, handler.check];
    const verdict = await inTime(runChecks(checked, checks, options));
    faultPoint('R2.after_checks');
    if (verdict.verdict === 'accept') {
      return { task: await decisions.accept(offer, { standing, content, incarnation }) };
    }
    checkBound(verdict, before, contract);
    return deferred(offer, await pending.defer(offer, message, { verdict, before }));
  }

  async function deferred(offer: OfferInHand, result: DeferResult): Promise<Outcome> {
    switch (result.outcome) {
      case 'decided':
        return { task: await decisions.answerNoted(offer, result.decision) };
      case 'conflict':
        return { task: await decisions.conflict(offer) };
      default:
        return { pending: result.pending };
    }
  }

  /** One that was stored, as any process of the agent finds it: to be checked, or past its time. */
  async function judgeStored({ key }: PendingOffer): Promise<void> {
    await lanes.run(keyText(key), async () => {
      const now = await ledger.getPending(key);
      if (now === null || now.message === null) return;
      const message: Message = JSON.parse(now.message);
      const principal = { agent: key.sender, tenant: key.tenant, tokenId: now.tokenId };
      const delivery: Delivery = { key, ref: now.ref, digest: now.digest, principal };
      const stored = { from: { kind: now.kind, toAgent: now.toAgent, incarnation: null } };
      try {
        if (clock.now() > new Date(now.acceptBy)) throw new HoldfastError('offer_expired');
        if (now.state !== 'deciding') {
          // It was claimed because its time was over by the database's clock.
          if (now.holder === options.lease.holder) throw new HoldfastError('busy');
          return;
        }
        faultPoint('R2.before_judging');
        const offer = inHand(readOffer(message, envelopes, limits), principal);
        const found = await ledger.offerStanding(key, offer.ref, offer.envelope.kind);
        if (found.decision === null) await judge(offer, found, { message, before: now, stores: false });
      } catch (error) {
        await decisions.refuse(delivery, toRejection(error), stored);
      }
    });
  }

  async function answer(
    message: Message,
    principal: Principal,
    { returnImmediately = false }: ReceiveOptions = {},
  ): Promise<Task> {
    const { answer: part, digest } = readAnswer(message, limits);
    const { root, handoff_id: handoffId, attempt, n } = part;
    const { tenant, agent: sender } = principal;
    const found = await ledger.getPending({ tenant, root, sender, handoffId, attempt });
    const received = found && options.received(found.contract);
    if (!found || !received || found.taskId !== message.taskId || !isAbout(found, part)) {
      throw new HoldfastError('answer_invalid', undefined, {
        fields: [{ path: 'message.taskId', problem: 'is not the task of this attempt' }],
      });
    }
    await checkAnswer(received.contract, part.facts);
    const { key, ref } = found;
    const result = await ledger.answerOffer({
      ...{ key, ref, n, digest, principal },
      answer: JSON.stringify(part),
      message: JSON.stringify(message),
      loggable: loggableOf(part, received.contract),
      holder: options.lease.holder,
    });
    switch (result.outcome) {
      case 'conflict':
        throw new HoldfastError('duplicate_conflict', 'The question was answered otherwise before.');
      case 'unasked':
        throw new HoldfastError('answer_invalid', undefined, {
          fields: [{ path: 'n', problem: 'is not the number of a question that is open' }],
        });
      case 'expired': {
        const expired = toRejection(new HoldfastError('offer_expired'));
        const from = { kind: found.kind, toAgent: found.toAgent, incarnation: null };
        return decisions.refuse({ key, ref, digest: found.digest, principal }, expired, { from });
      }
      case 'stored':
        faultPoint('R2.answered');
        news.tell(found.taskId);
        if (result.pending !== null) pending.takeUp(result.pending);
    }
    return returnImmediately ? pending.taskNow(found) : pending.join(found);
  }

  /** A document that cannot be read: stored as a rejection where its key can be read, else answered as not final. */
  async function refuseUnread(message: Message, principal: Principal, rejection: Rejection): Promise<Task> {
    const named = readOfferKey(message, envelopes);
    if (!named) {
      const part = rejectionPart(rejection, null, false);
      return decisions.storeTask(decisionTask(part, toUtc(clock.now())), principal);
    }
    const { root, caseId, handoffId, attempt, digest } = named;
    const { tenant, agent: sender } = principal;
    const offer: Delivery = {
      key: { tenant, root, sender, handoffId, attempt },
      ref: { tenant, root, caseId },
      digest,
      principal,
    };
    return lanes.run(keyText(offer.key), () => decisions.refuse(offer, rejection));
  }

  return {
    receive,
    answer,
    isDeciding: (key) => lanes.has(keyText(key)),
    untilChanged: (taskId, ms) => news.heard(taskId, ms),
    changed: (taskId) => news.tell(taskId),
    resume: (tenant) => pending.resume(tenant),
    stop: () => pending.stop(),
    ...createByPerson({ ...options, decisions, inHand }),
  };
}

/** An offer with the keys that it is looked up by: its sender's are those of the authenticated principal. */
function inHand(
  { envelope, canonical, digest }: ReturnType<typeof readOffer>,
  principal: Principal,
): OfferInHand {
  const { tenant, agent: sender } = principal;
  const { root, case_id: caseId, handoff_id: handoffId, attempt } = envelope;
  return {
    ...{ envelope, canonical, digest, principal },
    ref: { tenant, root, caseId },
    key: { tenant, root, sender, handoffId, attempt },
  };
}

/** What its sender says of its own ledger; of what another has made, or is for another, nothing follows from that. */
function originOf({ envelope, principal }: OfferInHand): { readonly from?: OfferOrigin } {
  const { kind, to_agent: toAgent, incarnation } = envelope;
  return envelope.from_agent === principal.agent ? { from: { kind, toAgent, incarnation } } : {};
}

/** @throws ContractRefusal where a check asks on and on */
function checkBound(
  { verdict }: Passed,
  before: PendingOffer | null,
  { questions = MAX_QUESTIONS }: Contract,
): void {
  if (verdict !== 'clarify' || (before?.clarifications.length ?? 0) < questions) return;
  throw new ContractRefusal({
    code: 'contract_refused',
    reason: `The acceptance check still has questions, and may ask ${questions}.`,
  });
}

/**
 * Only codes of class `rejection`, and a contract's own (thrown as {@link ContractRefusal}), are verdicts.
 * @throws whatever else it is given, since that decided nothing
 */
function toRejection(error: unknown): Rejection {
  if (error instanceof ContractRefusal) return error.rejection;
  if (isHoldfastError(error) && isErrorCode(error.code) && ERROR_TABLE[error.code].cls === 'rejection') {
    return { code: error.code, reason: error.message, fields: error.fields, data: error.data };
  }
  throw error;
}
