import {
  type AcceptanceKey,
  type Clock,
  ERROR_TABLE,
  HoldfastError,
  type Logger,
  newId,
  sha256Hex,
  toUtc,
} from '../core/index.js';
import type { HandoffEnvelope } from '../envelope/index.js';
import { faultPoint } from '../faults/index.js';
import type {
  DecisionRow,
  DecisionTask,
  LedgerStore,
  RejectCommand,
  SeparateAcceptance,
  WorkItem,
} from '../ledger/index.js';
import type { Task } from '../protocol/index.js';
import type { NodeIdentity, Principal } from '../trust/index.js';
import { type Delivery, decisionTask, keyText, type Rejection, rejectionPart } from './answers.js';
import type { Content, OfferInHand, Standing } from './judge.js';
import type { News } from './news.js';

export interface DecisionsOptions {
  readonly identity: NodeIdentity;
  readonly ledger: LedgerStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly news: News;
  /** Called once an acceptance has committed and its answer can leave. */
  onAccepted(item: WorkItem): void;
}

/** An offer that passed everything but the acceptance transaction. */
export interface Acceptable {
  readonly standing: Standing;
  readonly content: Content;
  readonly incarnation: string;
  /** The person who accepts it, where no check does. */
  readonly decidedBy?: string;
}

/** Makes verdicts durable, and answers what was decided: a verdict is stored before it is told. */
export type Decisions = ReturnType<typeof createDecisions>;

export function createDecisions(options: DecisionsOptions) {
  const { identity, ledger, clock, logger, news } = options;

  async function accept(
    offer: OfferInHand,
    { standing, content, incarnation, decidedBy }: Acceptable,
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
      ...(decidedBy === undefined ? {} : { decidedBy }),
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
        return concluded(task, result.decision, key);
      case 'refused':
        throw new HoldfastError(result.code, undefined, { data: result.data });
      case 'decided':
        return answerNoted(offer, result.decision);
      case 'conflict':
        return conflict(offer);
    }
  }

  /** What an envelope from another ledger brings into this one. */
  function broughtBy(
    { effects, incarnation }: HandoffEnvelope,
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
      incarnation,
      receipt,
      receiptKey: JSON.stringify(identity.publicKey),
    };
  }

  /** Stores the rejection, then answers it; a decision that stands already is the answer instead. */
  async function refuse(
    offer: Delivery,
    rejection: Rejection,
    { from, decidedBy }: Pick<RejectCommand, 'from' | 'decidedBy'> = {},
  ): Promise<Task> {
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
      ...(from === undefined ? {} : { from }),
      ...(decidedBy === undefined ? {} : { decidedBy }),
    });
    if (result.outcome === 'decided') return answerNoted(offer, result.decision);
    if (result.outcome === 'conflict') return conflict(offer);
    faultPoint('R3.after_reject');
    logger.info({ handoff: key.handoffId, attempt: key.attempt, code: rejection.code }, 'handoff rejected');
    return concluded(task, result.decision, key);
  }

  /** The task of an offer that was stored undecided is its own, and not the one that was made for the decision. */
  async function concluded(made: DecisionTask, { taskId }: DecisionRow, key: AcceptanceKey): Promise<Task> {
    if (taskId === null || taskId === made.id) return JSON.parse(made.task);
    news.tell(taskId);
    const row = await ledger.getTask(key.tenant, key.sender, taskId);
    if (row === null) throw new HoldfastError('internal', 'A decision has no task.');
    return JSON.parse(row.task);
  }

  /** What arrives once it is decided: the delivery is audited, and answered with what stands. */
  async function answerStored(offer: Delivery, stored: DecisionRow): Promise<Task> {
    if (stored.digest !== null && stored.digest !== offer.digest) {
      await ledger.recordDelivery(offer.key, offer.ref, offer.principal, offer.digest, 'delivery_conflict');
      return conflict(offer);
    }
    faultPoint('R3.before_repeat');
    await ledger.recordDelivery(offer.key, offer.ref, offer.principal, offer.digest, 'delivery_repeated');
    return answerNoted(offer, stored);
  }

  /** The same where the transaction that met the decision has audited the delivery. */
  async function answerNoted(offer: Delivery, stored: DecisionRow): Promise<Task> {
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

  /** An answer that decides nothing still has a task that can be read again. */
  async function storeTask(task: DecisionTask, { tenant, agent }: Principal): Promise<Task> {
    await ledger.createTask({ ...task, tenant, peer: agent, handoffId: null });
    return JSON.parse(task.task);
  }

  return { accept, refuse, answerStored, answerNoted, conflict, storeTask };
}
