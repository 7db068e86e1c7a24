import { HoldfastError, sha256Hex, toUtc } from '../../core/index.js';
import type { AnswerQuestionCommand, NoteTaskCommand, SentTask } from '../candidates.js';
import { atEpoch, attemptOf, loggableId, refuse, storable } from './facts.js';
import { isOpen } from './offers.js';
import type { Rule } from './ruling.js';

/*
 * What a sender knows of an offer that its receiver has not decided: the task there, and what was asked and answered. None of it decides
 * anything. An answer is kept before it is sent, so that what is sent again is the same to the letter; there is one for each question.
 */

/** Idempotent; of an offer that is decided by now nothing is noted. */
export const noteTask: Rule<NoteTaskCommand, SentTask | null> = (view, command) => {
  const { key, taskId, state } = command;
  const offer = view.offer(key);
  if (offer === null) throw new HoldfastError('offer_unknown');
  const before = view.sentTask(key);
  if (!isOpen(offer)) return { changes: [], audit: null, result: before };
  const asked =
    command.question === null ? null : { n: command.question.n, text: storable(command.question.text) };
  const last = before?.question ?? null;
  // What comes late says nothing new.
  const question = asked === null || (last !== null && asked.n < last.n) ? last : asked;
  // A receiver that has lost what it asked may ask something else under the same number: to that nobody has answered.
  const isOther = last !== null && question?.n === last.n && question.text !== last.text;
  const same =
    before?.taskId === taskId &&
    before.state === state &&
    last?.n === question?.n &&
    last?.text === question?.text;
  if (same) return { changes: [], audit: null, result: before };
  const { ref, epoch, digest, toAgent: peer } = offer;
  const row: SentTask = {
    key: offer.key,
    ref,
    peer,
    taskId,
    state,
    question,
    answer: isOther ? null : (before?.answer ?? null),
    at: toUtc(view.now),
  };
  return {
    changes: [{ do: 'set_sent_task', row }],
    audit: {
      ref,
      facts: [
        {
          type: 'offer_progressed',
          actor: key.sender,
          ...attemptOf(key),
          ...atEpoch(epoch),
          digest,
          data: {
            task: loggableId(taskId),
            state: loggableId(state),
            question: question === null ? null : { n: question.n, digest: sha256Hex(question.text) },
            ...(isOther && before?.answer != null ? { answerDropped: true } : {}),
          },
        },
      ],
    },
    result: row,
  };
};

/** The same again is idempotent. */
export const answerQuestion: Rule<AnswerQuestionCommand, SentTask> = (view, command) => {
  const { key, n, message, facts } = command;
  const offer = view.offer(key);
  if (offer === null) throw new HoldfastError('offer_unknown');
  const { ref, epoch } = offer;
  const refused = { write: 'answer_question', ref, writer: key.sender };
  const task = view.sentTask(key);
  if (task?.answer?.n === n) {
    if (task.answer.message === message) return { changes: [], audit: null, result: task };
    return refuse({
      ...refused,
      code: 'duplicate_conflict',
      message: `Question ${n} has another answer already; there is one to each.`,
      data: { question: n },
    });
  }
  if (!isOpen(offer)) return refuse({ ...refused, code: 'offer_decided', data: { state: offer.state } });
  if (task === null || task.question?.n !== n) return refuse({ ...refused, code: 'question_unknown' });
  const row: SentTask = { ...task, answer: { n, message }, at: toUtc(view.now) };
  return {
    changes: [{ do: 'set_sent_task', row }],
    audit: {
      ref,
      facts: [
        {
          type: 'answer_prepared',
          actor: key.sender,
          ...attemptOf(key),
          ...atEpoch(epoch),
          digest: sha256Hex(message),
          data: { n, facts: facts.map(loggableId) },
        },
      ],
    },
    result: row,
  };
};
