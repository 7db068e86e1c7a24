import { describe, expect, it } from 'vitest';
import { DEFAULT_LIMITS, HoldfastError, type JsonObject } from '../../src/core/index.js';
import {
  type AnswerPart,
  buildAnswerMessage,
  buildQuestionMessage,
  parseAnswerPart,
  readAnswer,
  readQuestion,
} from '../../src/envelope/index.js';
import { ANSWER_MEDIA_TYPE, type Message, QUESTION_MEDIA_TYPE } from '../../src/protocol/index.js';
import { TRIAGE } from './fixtures.js';

const identity = { root: TRIAGE, case_id: 'CASE-7001', handoff_id: 'CASE-7001:4', attempt: 2, n: 1 };
const task = { id: 'task_1', contextId: 'ctx_1' };
const fact = { key: 'channel', value: 'web', source: 'crm', verified: true };
const answer: AnswerPart = { ...identity, facts: [fact], text: 'Bought on the web.' };

/** The fields that are named, or `null` where it is read. */
function refused(message: Message): readonly string[] | null {
  try {
    readAnswer(message, DEFAULT_LIMITS);
    return null;
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.code).toBe('answer_invalid');
    return error.fields.map(({ path }) => path);
  }
}

describe('a question', () => {
  const part = { ...identity, question: 'Which channel?' };

  it('stands in a message of the task and is read back', () => {
    const message = buildQuestionMessage(part, task);
    expect(message).toMatchObject({ role: 'ROLE_AGENT', taskId: 'task_1', contextId: 'ctx_1' });
    expect(message.parts[0]).toMatchObject({ text: 'Which channel?' });
    expect(readQuestion(message)).toEqual(part);
  });

  it.each<[string, JsonObject[]]>([
    ['none', []],
    ['two', [part, part]],
    ['one without its number', [{ ...identity, n: 0, question: 'Which?' }]],
    ['one that is too long', [{ ...part, question: 'x'.repeat(2001) }]],
    ['one with a field more', [{ ...part, hint: 'x' }]],
  ])('is not read where there is %s', (_, documents) => {
    const parts = documents.map((data) => ({ data, mediaType: QUESTION_MEDIA_TYPE }));
    expect(() => readQuestion({ parts })).toThrow(expect.objectContaining({ code: 'peer_error' }));
  });
});

describe('an answer', () => {
  const message = buildAnswerMessage(answer, 'task_1');

  it('is one message to the task, with the same digest however its fields are ordered', () => {
    expect(message).toMatchObject({ messageId: 'CASE-7001:4:2:answer-1', taskId: 'task_1' });
    const read = readAnswer(message, DEFAULT_LIMITS);
    expect(read.answer).toEqual(answer);
    const turned = Object.fromEntries(Object.entries(answer).reverse()) as JsonObject;
    const [text] = message.parts;
    const other = { ...message, parts: [text ?? {}, { data: turned, mediaType: ANSWER_MEDIA_TYPE }] };
    expect(readAnswer(other, DEFAULT_LIMITS).digest).toBe(read.digest);
  });

  const withData = (change: JsonObject): Message => ({
    ...message,
    parts: [{ data: { ...(answer as unknown as JsonObject), ...change }, mediaType: ANSWER_MEDIA_TYPE }],
  });
  it.each<[string, Message, string[]]>([
    ['another messageId', { ...message, messageId: 'CASE-7001:4:2' }, ['message.messageId']],
    ['no answer part', { ...message, parts: [{ text: 'hi' }] }, ['message.parts']],
    ['two answer parts', { ...message, parts: [...message.parts, ...message.parts] }, ['message.parts']],
    ['another part', { ...message, parts: [...message.parts, { raw: 'aGk=' }] }, ['message.parts.2']],
    [
      'neither fact nor text',
      {
        ...withData({ facts: [] }),
        parts: [{ data: { ...identity, facts: [] }, mediaType: ANSWER_MEDIA_TYPE }],
      },
      ['facts'],
    ],
    ['a fact without a source', withData({ facts: [{ ...fact, source: '' }] }), ['facts.0.source']],
    ['a fact twice', withData({ facts: [fact, fact] }), ['facts.1.key']],
    [
      'a day that does not exist',
      withData({ facts: [{ ...fact, observed_at: '2026-02-30T10:00:00Z' }] }),
      ['facts.0.observed_at'],
    ],
    ['a field more', withData({ extra: 1 }), ['extra']],
    ['a text that is too long', withData({ text: 'x'.repeat(2001) }), ['text']],
    ['a whole conversation', withData({ text: 'Ann: hi\nBob: hello\nAnn: well\nBob: no' }), ['text']],
  ])('is refused with %s, naming the field', (_, given, paths) => {
    expect(refused(given)).toEqual(paths);
  });

  it('is at most as large as an envelope', () => {
    expect(() => parseAnswerPart(answer as unknown as JsonObject, { maxEnvelopeBytes: 100 })).toThrow(
      expect.objectContaining({ code: 'answer_invalid' }),
    );
  });
});
