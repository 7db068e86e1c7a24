import {
  type Clock,
  ERROR_TABLE,
  HoldfastError,
  inTime,
  isErrorCode,
  isHoldfastError,
  type Limits,
  type Logger,
  newId,
  sha256Hex,
  toUtc,
} from '../core/index.js';
import { type EnvelopeRegistry, type HandoffEnvelope, readOffer, readOfferKey } from '../envelope/index.js';
import type { EvidenceDownloader, EvidenceStore } from '../evidence/index.js';
import { faultPoint } from '../faults/index.js';
import type {
  DecisionRow,
  DecisionTask,
  LedgerStore,
  SeparateAcceptance,
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
import { judgeContent, judgePermission, judgeStanding, type OfferInHand, type Standing } from './judge.js';
import { Lanes } from './lanes.js';
import type { ReceivedContract } from './model.js';
import type { Receiver } from './port.js';

export interface ReceiverOptions {
  readonly identity: NodeIdentity;
  readonly ledger: LedgerStore;
  readonly peers: PeerDirectory;
  readonly keys: PeerKeySource;
  readonly envelopes: EnvelopeRegistry;
  readonly evidence: { readonly store: EvidenceStore; readonly downloader: EvidenceDownloader };
  readonly limits: Limits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** `name/version` -> what is accepted here. */
  received(contract: string): ReceivedContract | null;
  /** Called once an acceptance has committed and its answer can leave. */
  onAccepted(item: WorkItem): void;
}

/**
 * The receiving pipeline: every offer is untrusted input and is judged from cheap to dear, documents before policy before the network;
 * ownership is compared again inside the acceptance transaction. A verdict is stored before it is answered. Whatever is thrown
 * decided nothing and leaves the offer open.
 */
export function createReceiver(options: ReceiverOptions): Receiver {
  const { identity, ledger, clock, logger } = options;
  const lanes = new Lanes();

  async function receive(message: Message, principal: Principal): Promise<Task> {
    let read: ReturnType<typeof readOffer>;
    try {
      read = readOffer(message, options.envelopes, options.limits);
    } catch (error) {
      return refuseUnread(message, principal, toRejection(error));
    }
    const { envelope, canonical, digest } = read;
    const offer: OfferInHand = {
      envelope,
      canonical,
      digest,
      principal,
      ref: { tenant: principal.tenant, root: envelope.root, caseId: envelope.case_id },
      key: {
        tenant: principal.tenant,
        root: envelope.root,
        sender: principal.agent,
        handoffId: envelope.handoff_id,
        attempt: envelope.attempt,
      },
    };
    return lanes.run(keyText(offer.key), () => decide(offer));
  }

  async function decide(offer: OfferInHand): Promise<Task> {
    faultPoint('R1.received');
    try {
      if (offer.envelope.to_agent !== identity.url) throw new HoldfastError('not_addressee');
      if (offer.envelope.from_agent !== offer.principal.agent) throw new HoldfastError('peer_mismatch');
      const found = await ledger.offerStanding(offer.key, offer.ref, offer.envelope.kind);
      if (found.decision) return await answerStored(offer, found.decision);
      const permitted = judgePermission(offer, found, options);
      const standing = await judgeStanding(offer, found, permitted, options);
      faultPoint('R1.after_standing');
      const content = await beforeItExpires(offer, judgeContent(offer, standing, options));
      faultPoint('R2.after_checks');
      return await accept(offer, standing, content, found.incarnation);
    } catch (error) {
      return refuse(offer, toRejection(error));
    }
  }

  /** A check that never comes back must not hold its offer, and every resend of it, for longer than it could be accepted. */
  function beforeItExpires<T>({ envelope }: OfferInHand, verdict: Promise<T>): Promise<T> {
    const leftMs = Date.parse(envelope.accept_by) - clock.now().getTime();
    return inTime(leftMs, verdict, () => new HoldfastError('offer_expired'));
  }

  async function accept(
    offer: OfferInHand,
    standing: Standing,
    content: Awaited<ReturnType<typeof judgeContent>>,
    incarnation: string,
  ): Promise<Task> {
    const { envelope, key, ref, digest } = offer;
    const at = clock.now();
    const workId = newId('work');
    const receipt = await identity.signReceipt({
      iss: identity.url,
      root: ref.root,
      case_id: ref.caseId,
      handoff_id: key.handoffId,
      attempt: key.attempt,
      from_agent: envelope.from_agent,
      to_agent: envelope.to_agent,
      old_epoch: envelope.epoch,
      new_epoch: envelope.epoch + 1,
      digest,
      incarnation,
      iat: Math.floor(at.getTime() / 1000),
      jti: newId('receipt'),
    });
    const part = {
      accepted: true as const,
      root: ref.root,
      case_id: ref.caseId,
      handoff_id: key.handoffId,
      attempt: key.attempt,
      epoch: envelope.epoch + 1,
      work_item: workId,
      receipt,
    };
    const task = decisionTask(part, toUtc(at));
    faultPoint('R3.before_commit');
    const result = await ledger.accept({
      key,
      ref,
      kind: envelope.kind,
      toAgent: envelope.to_agent,
      epoch: envelope.epoch,
      digest,
      contract: envelope.contract,
      acceptBy: envelope.accept_by,
      constraints: content.constraints,
      hops: envelope.chain.hops,
      tasksLeft: envelope.chain.tasks_left - 1,
      envelope: offer.canonical,
      answer: JSON.stringify(part),
      workId,
      task,
      principal: offer.principal,
      loggable: content.loggable,
      ...(standing.approval === undefined ? {} : { approval: standing.approval }),
      ...(standing.kind.mode === 'separate' ? { separate: broughtBy(envelope, standing, receipt) } : {}),
    });
    switch (result.outcome) {
      case 'accepted':
        faultPoint('R3.after_commit');
        logger.info(
          { handoff: key.handoffId, attempt: key.attempt, epoch: envelope.epoch + 1 },
          'handoff accepted',
        );
        options.onAccepted(result.work);
        return JSON.parse(task.task);
      case 'refused':
        throw new HoldfastError(result.code, undefined, { data: result.data });
      case 'decided':
        return answerStored(offer, result.decision);
      case 'conflict':
        return conflict(offer);
    }
  }

  /** What an envelope from another ledger brings into this one. */
  function broughtBy(
    { effects }: HandoffEnvelope,
    { provenance }: Standing,
    receipt: string,
  ): SeparateAcceptance {
    return {
      provenance,
      effects: effects.map(({ key, status, operation, amount = null }) => ({
        key,
        operation,
        amount,
        state: status,
      })),
      receipt,
      receiptKey: JSON.stringify(identity.publicKey),
    };
  }

  /** Stores the rejection, then answers it; a decision that stands already is the answer instead. */
  async function refuse(offer: Delivery, rejection: Rejection): Promise<Task> {
    const { key, ref, digest, principal } = offer;
    const part = rejectionPart(rejection, offer, true);
    const task = decisionTask(part, toUtc(clock.now()));
    faultPoint('R3.before_reject');
    const result = await ledger.reject({
      key,
      ref,
      digest,
      code: rejection.code,
      answer: JSON.stringify(part),
      task,
      principal,
      data: rejection.data ?? {},
    });
    if (result.outcome === 'decided') return answerStored(offer, result.decision);
    if (result.outcome === 'conflict') return conflict(offer);
    faultPoint('R3.after_reject');
    logger.info({ handoff: key.handoffId, attempt: key.attempt, code: rejection.code }, 'handoff rejected');
    return JSON.parse(task.task);
  }

  async function answerStored(offer: Delivery, stored: DecisionRow): Promise<Task> {
    if (stored.digest !== null && stored.digest !== offer.digest) {
      await ledger.recordDelivery(offer.key, offer.ref, offer.principal, offer.digest, 'delivery_conflict');
      return conflict(offer);
    }
    faultPoint('R3.before_repeat');
    await ledger.recordDelivery(offer.key, offer.ref, offer.principal, offer.digest, 'delivery_repeated');
    // A tombstone was stored by the sender's side and has no task yet: its first late arrival makes the one that all get.
    const taskId = stored.taskId ?? `task_${sha256Hex(keyText(offer.key)).slice(0, 32)}`;
    const held = () => ledger.getTask(offer.key.tenant, offer.principal.agent, taskId);
    const before = await held();
    if (before) return JSON.parse(before.task);
    try {
      return await storeTask(
        decisionTask(JSON.parse(stored.answer), toUtc(clock.now()), taskId),
        offer.principal,
      );
    } catch (error) {
      // Another process was told the same at the same moment.
      const now = await held();
      if (now) return JSON.parse(now.task);
      throw error;
    }
  }

  async function conflict(offer: Delivery): Promise<Task> {
    const part = rejectionPart(
      { code: 'duplicate_conflict', reason: ERROR_TABLE.duplicate_conflict.meaning },
      offer,
      false,
    );
    return storeTask(decisionTask(part, toUtc(clock.now())), offer.principal);
  }

  /** A document that cannot be read: stored as a rejection where its key can be read, else answered as not final. */
  async function refuseUnread(message: Message, principal: Principal, rejection: Rejection): Promise<Task> {
    const named = readOfferKey(message, options.envelopes);
    if (!named) {
      const part = rejectionPart(rejection, null, false);
      return storeTask(decisionTask(part, toUtc(clock.now())), principal);
    }
    const { root, caseId, handoffId, attempt, digest } = named;
    const { tenant, agent: sender } = principal;
    const offer: Delivery = {
      key: { tenant, root, sender, handoffId, attempt },
      ref: { tenant, root, caseId },
      digest,
      principal,
    };
    return lanes.run(keyText(offer.key), () => refuse(offer, rejection));
  }

  /** An answer that decides nothing still has a task that can be read again. */
  async function storeTask(task: DecisionTask, { tenant, agent }: Principal): Promise<Task> {
    await ledger.createTask({ ...task, tenant, peer: agent, handoffId: null });
    return JSON.parse(task.task);
  }

  return { receive, isDeciding: (key) => lanes.has(keyText(key)) };
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
