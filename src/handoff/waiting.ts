import { HoldfastError, isHoldfastError } from '../core/index.js';
import { readQuestion } from '../envelope/index.js';
import { faultPoint } from '../faults/index.js';
import type { OfferRow, SentTask } from '../ledger/index.js';
import type { Task } from '../protocol/index.js';
import { concludeFromLedger, concludeFromTask } from './conclude.js';
import { type CrossingOptions, concludeAcross, lookAcross, type Sighting } from './crossing.js';
import type { HandOffResult } from './model.js';

/*
 * An offer that its receiver has stored and not decided is a task there. It is read again until it is decided, and its bytes are not
 * sent again as long as the receiver says so; what the receiver asks is kept, and answered with the bytes that are kept. None of it settles anything.
 */

export interface WaitingOptions extends CrossingOptions {
  /** Whether the receiver decides in a ledger of its own. */
  isAcross(offer: OfferRow): Promise<boolean>;
  withdraw(key: OfferRow['key'], reason: string): Promise<HandOffResult>;
  /** A task is known that was not known before. What it throws is only logged. */
  onTask?(task: SentTask): Promise<void>;
}

export interface Waiting {
  /** What a task of the receiver says about the offer. @throws receipt_invalid, peer_error, and the refusals of the ledger */
  read(offer: OfferRow, task: Task): Promise<HandOffResult>;
  /** Asks the receiver; null where it does not say: the identical bytes may be sent again. @throws case_quarantined */
  look(offer: OfferRow): Promise<HandOffResult | null>;
  /** Sends the answer that is kept, and reads what the receiver makes of it. @throws question_unknown, peer_unreachable, outcome_unknown, peer_error, unauthenticated */
  answer(offer: OfferRow): Promise<HandOffResult>;
}

export const INPUT_REQUIRED = 'TASK_STATE_INPUT_REQUIRED';
const WORKING = 'TASK_STATE_WORKING';
const UNDECIDED: ReadonlySet<string> = new Set(['TASK_STATE_SUBMITTED', WORKING, INPUT_REQUIRED]);

export function createWaiting(options: WaitingOptions): Waiting {
  const { ledger, client, logger } = options;

  async function read(offer: OfferRow, task: Task, answers = true): Promise<HandOffResult> {
    const { state } = task.status;
    if (UNDECIDED.has(state)) {
      return note(offer, { taskId: task.id, state, question: questionIn(offer, task) }, answers);
    }
    return (await options.isAcross(offer))
      ? concludeAcross(offer, task, options, () => options.withdraw(offer.key, 'not read by its receiver'))
      : concludeFromTask(offer, task, options, options.withdraw);
  }

  async function note(offer: OfferRow, seen: Sighting, answers = true): Promise<HandOffResult> {
    const { key } = offer;
    const before = await ledger.getSentTask(key);
    const { taskId, question } = seen;
    const task = await ledger.noteTask({ key, taskId, question, state: stateOf(seen, before) });
    const now = (await ledger.getOffer(key)) ?? offer;
    const decided = await concludeFromLedger(now, options);
    if (decided) return decided;
    if (task === null) throw new HoldfastError('internal');
    if (before?.taskId !== taskId) await tell(task);
    return answers && isAnswered(task) ? send(now, task) : undecided(now, task);
  }

  async function tell(task: SentTask): Promise<void> {
    try {
      await options.onTask?.(task);
    } catch (err) {
      const code = isHoldfastError(err) ? err.code : 'internal';
      logger.warn(
        { code, task: task.taskId, err },
        'the task of an offer is not watched; it is read now and then',
      );
    }
  }

  /** The same bytes every time: the receiver knows an answer that it has. */
  async function send(offer: OfferRow, { answer }: SentTask): Promise<HandOffResult> {
    if (answer === null) throw new HoldfastError('question_unknown');
    faultPoint('A1.before_answer');
    return read(offer, await client.send(offer.toAgent, answer.message, { returnImmediately: true }), false);
  }

  async function look(offer: OfferRow): Promise<HandOffResult | null> {
    if (offer.state === 'intended') return null;
    try {
      if (await options.isAcross(offer)) return await lookAcross(offer, options, (seen) => note(offer, seen));
      const task = await ledger.getSentTask(offer.key);
      return task === null ? null : await read(offer, await client.getTask(offer.toAgent, task.taskId));
    } catch (error) {
      if (!isHoldfastError(error) || error.code === 'case_quarantined') throw error;
      const { handoffId, attempt } = offer.key;
      logger.warn(
        { handoff: handoffId, attempt, code: error.code },
        'the receiver did not say what it decided',
      );
      const task = await ledger.getSentTask(offer.key);
      // It has said that it has the offer: to send that again would tell it nothing.
      if (task === null || error.code === 'not_found') return null;
      return { state: 'open', offer, problem: error.code, reason: error.message, task };
    }
  }

  return {
    read: (offer, task) => read(offer, task),
    look,
    async answer(offer) {
      const task = await ledger.getSentTask(offer.key);
      if (task === null) throw new HoldfastError('question_unknown');
      return send(offer, task);
    },
  };
}

function undecided(offer: OfferRow, task: SentTask): HandOffResult {
  const asks = task.state === INPUT_REQUIRED && !isAnswered(task);
  const reason = asks
    ? 'The receiver asks something first.'
    : 'The receiver has it, and has not decided yet.';
  return { state: 'open', offer, problem: null, reason, task };
}

function isAnswered({ state, question, answer }: SentTask): boolean {
  return state === INPUT_REQUIRED && answer !== null && answer.n === question?.n;
}

/** A query does not say whether the receiver has begun. */
function stateOf({ state, question }: Sighting, before: SentTask | null): string {
  if (state !== null) return state;
  if (question !== null) return INPUT_REQUIRED;
  return before === null || before.state === INPUT_REQUIRED ? WORKING : before.state;
}

/** @throws peer_error where it is not about this attempt */
function questionIn({ key, ref }: OfferRow, { status }: Task): Sighting['question'] {
  if (status.state !== INPUT_REQUIRED) return null;
  const part = readQuestion(status.message);
  const isIts =
    part.root === ref.root &&
    part.case_id === ref.caseId &&
    part.handoff_id === key.handoffId &&
    part.attempt === key.attempt;
  if (!isIts) throw new HoldfastError('peer_error', 'The question is about another attempt.');
  return { n: part.n, text: part.question };
}
