import { checkAnswer, type OfferView } from '../contract/index.js';
import {
  type AcceptanceKey,
  type Clock,
  HoldfastError,
  inTime,
  isHoldfastError,
  type Logger,
  newId,
  pauseAbout,
  toUtc,
} from '../core/index.js';
import { type AnswerPart, buildQuestionMessage } from '../envelope/index.js';
import { faultPoint } from '../faults/index.js';
import type { DecisionTask, DeferResult, LedgerStore, PendingOffer } from '../ledger/index.js';
import type { Message, Task, TaskState } from '../protocol/index.js';
import { MAX_QUESTION_CHARS, TERMINAL_TASK_STATES } from '../protocol/index.js';
import { clip, keyText } from './answers.js';
import type { OfferInHand } from './judge.js';
import type { Lease } from './lease.js';
import type { ReceivedContract } from './model.js';
import type { News } from './news.js';
import type { Passed } from './verdict.js';

/** Another process may have changed a task: looked at again after that, milliseconds. */
const POLL_MS = 500;
/** A blocking call is answered with the task as it is before its client gives up, milliseconds. */
const JOIN_LIMIT_MS = 20_000;
/** Waits after a check that decided nothing, growing; then the last of them, milliseconds. */
const AGAIN_MS = [500, 2_000, 5_000, 15_000, 30_000] as const;
const BATCH = 100;

export interface PendingOptions {
  readonly ledger: LedgerStore;
  readonly lease: Pick<Lease, 'holder' | 'claimPending'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly news: News;
  received(contract: string): ReceivedContract | null;
  /** Checks a stored offer, and decides it where that can be. */
  judge(pending: PendingOffer): Promise<void>;
}

export type Pending = ReturnType<typeof createPending>;

/** Offers that are not decided at once: they are stored with their tasks, checked in the background, and followed by whoever waits. */
export function createPending(options: PendingOptions) {
  const { ledger, lease, news, logger } = options;
  const running = new Map<string, Promise<void>>();
  const stopping = new AbortController();

  /** Stores the offer, or what its check has come to. */
  async function defer(
    offer: OfferInHand,
    message: Message,
    { verdict, before }: { verdict: Passed | null; before: PendingOffer | null },
  ): Promise<DeferResult> {
    const { envelope, key, ref, digest, principal } = offer;
    const id = before?.taskId ?? newId('task');
    const contextId = newId('ctx');
    const n = (before?.clarifications.length ?? 0) + 1;
    const asks =
      verdict?.verdict === 'clarify'
        ? clip(clipChars(verdict.question), Number.POSITIVE_INFINITY, '?')
        : null;
    const question =
      asks === null
        ? undefined
        : buildQuestionMessage(
            {
              root: ref.root,
              case_id: ref.caseId,
              handoff_id: key.handoffId,
              attempt: key.attempt,
              n,
              question: asks,
            },
            { id, contextId },
          );
    const state = asks !== null ? 'asked' : verdict?.verdict === 'later' ? 'waiting' : 'deciding';
    faultPoint('R2.before_store');
    const result = await ledger.deferOffer({
      ...{ key, ref, digest, principal, state },
      kind: envelope.kind,
      toAgent: envelope.to_agent,
      contract: envelope.contract,
      message: JSON.stringify(message),
      acceptBy: envelope.accept_by,
      ...(asks === null ? {} : { question: { n, question: asks } }),
      task: taskOf(id, contextId, question, options.clock),
      holder: lease.holder,
    });
    if (result.outcome === 'stored') {
      faultPoint('R2.stored');
      news.tell(result.pending.taskId);
      logger.info({ handoff: key.handoffId, attempt: key.attempt, state }, 'handoff not decided yet');
    }
    return result;
  }

  /** Checks it in the background, until it is decided or waits for somebody. */
  function takeUp(pending: PendingOffer): void {
    const id = keyText(pending.key);
    if (stopping.signal.aborted || running.has(id)) return;
    running.set(
      id,
      untilJudged(pending).finally(() => running.delete(id)),
    );
  }

  async function untilJudged(pending: PendingOffer): Promise<void> {
    const { signal } = stopping;
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        return await options.judge(pending);
      } catch (err) {
        const code = isHoldfastError(err) ? err.code : 'internal';
        const { handoffId: handoff, attempt } = pending.key;
        logger.warn({ handoff, attempt, code, err }, 'a stored offer could not be decided; tried again');
        if (code === 'case_quarantined') return;
      }
      await pauseAbout(AGAIN_MS[tries] ?? AGAIN_MS[AGAIN_MS.length - 1] ?? 0, signal);
    }
  }

  async function resume(tenant: string): Promise<number> {
    let resumed = 0;
    for (let found = BATCH; found === BATCH && !stopping.signal.aborted; resumed += found) {
      const claimed = await lease.claimPending(tenant, BATCH);
      found = claimed.length;
      for (const pending of claimed) takeUp(pending);
    }
    return resumed;
  }

  async function taskNow({ key, taskId }: PendingOffer): Promise<Task> {
    const row = await ledger.getTask(key.tenant, key.sender, taskId);
    if (row === null) throw new HoldfastError('internal', 'A stored offer has no task.');
    return JSON.parse(row.task);
  }

  /** The task once it is decided or a question is open; as it is, where that takes too long. */
  async function join(pending: PendingOffer): Promise<Task> {
    const until = performance.now() + JOIN_LIMIT_MS;
    for (;;) {
      const task = await taskNow(pending);
      if (isSettled(task.status.state) || stopping.signal.aborted) return task;
      const left = until - performance.now();
      if (left <= 0) return task;
      await news.heard(pending.taskId, Math.min(POLL_MS, left));
    }
  }

  return {
    defer,
    takeUp,
    resume,
    taskNow,
    join,
    async stop(): Promise<void> {
      stopping.abort();
      await Promise.all(running.values());
    },
  };
}

/** What a check is given: the answers as the contract reads them. */
export async function clarificationsOf(
  { clarifications }: Pick<PendingOffer, 'clarifications'>,
  { contract }: ReceivedContract,
): Promise<OfferView['clarifications']> {
  const answered = clarifications.filter(({ answer }) => answer !== null);
  return Promise.all(
    answered.map(async ({ question, answer }) => {
      const { facts, text = null } = JSON.parse(answer ?? '') as AnswerPart;
      return { question, answer: { facts: await checkAnswer(contract, facts), text } };
    }),
  );
}

/** Whether the key is that of the answer. */
export function isAbout(
  { key, ref }: { key: AcceptanceKey; ref: { caseId: string } },
  part: AnswerPart,
): boolean {
  return (
    part.root === key.root &&
    part.handoff_id === key.handoffId &&
    part.attempt === key.attempt &&
    part.case_id === ref.caseId
  );
}

function isSettled(state: TaskState): boolean {
  return state === 'TASK_STATE_INPUT_REQUIRED' || TERMINAL_TASK_STATES.includes(state);
}

function clipChars(text: string): string {
  return [...text].slice(0, MAX_QUESTION_CHARS).join('');
}

function taskOf(id: string, contextId: string, question: Message | undefined, clock: Clock): DecisionTask {
  const state: TaskState = question === undefined ? 'TASK_STATE_SUBMITTED' : 'TASK_STATE_INPUT_REQUIRED';
  const timestamp = toUtc(clock.now());
  const task: Task = {
    id,
    contextId,
    status: { state, timestamp, ...(question === undefined ? {} : { message: question }) },
  };
  return { id, contextId, state, statusAt: timestamp, task: JSON.stringify(task) };
}

/** A check that never comes back must not hold its offer, and every resend of it, for longer than it could be accepted. */
export function beforeItExpires<T>(acceptBy: string, clock: Clock, verdict: Promise<T>): Promise<T> {
  const leftMs = Date.parse(acceptBy) - clock.now().getTime();
  return inTime(leftMs, verdict, () => new HoldfastError('offer_expired'));
}
