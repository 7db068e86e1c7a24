import * as z from 'zod';
import {
  answerIdOf,
  canonical,
  type FieldError,
  HoldfastError,
  type JsonObject,
  type JsonValue,
  type Limits,
  parseUtc,
  sha256Hex,
} from '../core/index.js';
import {
  ANSWER_MEDIA_TYPE,
  bareMediaType,
  EXTENSION_URI,
  MAX_QUESTION_CHARS,
  type Message,
  type Part,
  QUESTION_MEDIA_TYPE,
} from '../protocol/index.js';
import * as form from './forms.js';
import { findInline } from './inline.js';
import { documentError, fieldsOf } from './problems.js';

/*
 * What passes between an offer and its decision: the receiver asks in the status of the task, the sender answers with a message to that task.
 * Both name the attempt, so that neither can be taken for one about another.
 */

/** Characters (code points) of the free text in an answer. */
const MAX_ANSWER_CHARS = 2_000;

const attempt = {
  root: form.agentUrl,
  case_id: form.caseId,
  handoff_id: form.handoffId,
  attempt: form.positive,
  /** From 1, in the order in which they were asked. */
  n: form.positive,
};

export const questionPartSchema = z
  .strictObject({ ...attempt, question: form.text(MAX_QUESTION_CHARS) })
  .meta({
    title: 'Holdfast question part, version 1',
    description: 'What a receiver asks before it decides an offer.',
  });

export const answerPartSchema = z
  .strictObject({
    ...attempt,
    facts: z.array(form.fact).max(100),
    text: form.text(MAX_ANSWER_CHARS).exactOptional(),
  })
  .meta({
    title: 'Holdfast answer part, version 1',
    description: "The sender's answer to one question about an offer.",
  });

export type QuestionPart = z.infer<typeof questionPartSchema>;
export type AnswerPart = z.infer<typeof answerPartSchema>;

/** The message that a task waiting for an answer has in its status. */
export function buildQuestionMessage(
  part: QuestionPart,
  { id, contextId }: { id: string; contextId: string },
): Message {
  return {
    messageId: `${part.handoff_id}:${part.attempt}:question-${part.n}`,
    role: 'ROLE_AGENT',
    taskId: id,
    contextId,
    extensions: [EXTENSION_URI],
    parts: [
      { text: part.question, mediaType: 'text/plain' },
      { data: part as unknown as JsonObject, mediaType: QUESTION_MEDIA_TYPE },
    ],
  };
}

/** The question in the status of a task. @throws peer_error where there is not exactly one, or it has another form */
export function readQuestion(message: Pick<Message, 'parts'> | undefined): QuestionPart {
  const parts = partsOf(message?.parts ?? [], QUESTION_MEDIA_TYPE);
  const result = questionPartSchema.safeParse(parts[0]?.data);
  if (parts.length === 1 && result.success) return result.data;
  throw new HoldfastError('peer_error', 'The question does not have the required form.', {
    fields: result.success ? [] : fieldsOf(result.error),
  });
}

/** The message that answers a question; its `messageId` is made of what it answers. */
export function buildAnswerMessage(part: AnswerPart, taskId: string): Message {
  return {
    messageId: answerIdOf(part.handoff_id, part.attempt, part.n),
    role: 'ROLE_USER',
    taskId,
    extensions: [EXTENSION_URI],
    parts: [
      {
        text: `Answer to question ${part.n} about ${part.case_id}. The structured part is what counts.`,
        mediaType: 'text/plain',
      },
      { data: part as unknown as JsonObject, mediaType: ANSWER_MEDIA_TYPE },
    ],
  };
}

/**
 * Reads an answer as far as its own bytes allow. `digest`: of its data part; the same answer has the same one.
 * @throws answer_invalid naming up to three fields; it decides nothing
 */
export function readAnswer(
  message: Message,
  limits: Pick<Limits, 'maxEnvelopeBytes'>,
): { answer: AnswerPart; digest: string } {
  const [part, ...more] = partsOf(message.parts, ANSWER_MEDIA_TYPE);
  if (part?.data === undefined || more.length > 0) {
    throw invalid([{ path: 'message.parts', problem: `must hold one data part ${ANSWER_MEDIA_TYPE}` }]);
  }
  const answer = parseAnswerPart(part.data, limits);
  const problems = message.parts.flatMap((each, at): FieldError[] => {
    if (each === part) return [];
    const path = `message.parts.${at}`;
    if (each.text === undefined) return [{ path, problem: 'has no place in an answer' }];
    return [findInline(`${path}.text`, each.text)].filter((found) => found !== null);
  });
  if (message.messageId !== answerIdOf(answer.handoff_id, answer.attempt, answer.n)) {
    problems.unshift({ path: 'message.messageId', problem: 'must be handoff_id:attempt:answer-n' });
  }
  if (problems.length > 0) throw invalid(problems);
  return { answer, digest: sha256Hex(canonical(part.data)) };
}

/** @throws answer_invalid naming up to three fields */
export function parseAnswerPart(value: JsonValue, limits: Pick<Limits, 'maxEnvelopeBytes'>): AnswerPart {
  const bytes = Buffer.byteLength(canonical(value));
  if (bytes > limits.maxEnvelopeBytes) {
    throw invalid([{ path: '', problem: `must be at most ${limits.maxEnvelopeBytes} bytes` }]);
  }
  const result = answerPartSchema.safeParse(value);
  if (!result.success) throw invalid(fieldsOf(result.error));
  const { facts, text } = result.data;
  const problems = facts.flatMap((fact, at): (FieldError | null)[] => [
    findInline(`facts.${at}.value`, fact.value),
    fact.observed_at !== undefined && parseUtc(fact.observed_at) === null
      ? { path: `facts.${at}.observed_at`, problem: 'names a day that does not exist' }
      : null,
    facts.findIndex(({ key }) => key === fact.key) < at
      ? { path: `facts.${at}.key`, problem: 'is given twice' }
      : null,
  ]);
  if (text !== undefined) problems.push(findInline('text', text));
  if (text === undefined && facts.length === 0)
    problems.push({ path: 'facts', problem: 'must not be empty without a text' });
  const found = problems.filter((problem) => problem !== null);
  if (found.length > 0) throw invalid(found);
  return result.data;
}

function partsOf(parts: readonly Part[], mediaType: string): Part[] {
  return parts.filter((part) => bareMediaType(part.mediaType ?? '') === mediaType);
}

function invalid(fields: readonly FieldError[]): HoldfastError {
  return documentError('answer_invalid', fields);
}
