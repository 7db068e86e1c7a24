import { describe, expect, it } from 'vitest';
import {
  ANSWER_MEDIA_TYPE,
  type AttemptQuery,
  CONTROL_MEDIA_TYPE,
  classifyMessage,
  type Message,
  parseControlAnswer,
} from '../../src/protocol/index.js';

const query: AttemptQuery = {
  verb: 'handoff.query',
  root: 'https://triage.example',
  handoff_id: 'CASE-7001:4',
  attempt: 1,
};
const read = (fields: Record<string, unknown>) =>
  parseControlAnswer(
    { parts: [{ data: { ...query, ...fields } as never, mediaType: CONTROL_MEDIA_TYPE }] },
    query,
  );

describe('what is asked about an attempt', () => {
  const question = { n: 1, question: 'Which channel?' };

  it.each([
    { state: 'deciding' },
    { state: 'deciding', task_id: 'task_1' },
    { state: 'deciding', task_id: 'task_1', question },
  ])('is read from %j', (fields) => {
    expect(read(fields)).toMatchObject(fields);
  });

  it.each([
    { state: 'none', task_id: 'task_1' },
    { state: 'none', question },
    { state: 'deciding', question: { ...question, n: 0 } },
    { state: 'deciding', question: { ...question, question: 'x'.repeat(2001) } },
    { state: 'deciding', question: { ...question, more: 1 } },
    { state: 'deciding', question: 'Which channel?' },
    { state: 'deciding', task_id: '' },
  ])('is refused as %j', (fields) => {
    expect(() => read(fields)).toThrow(expect.objectContaining({ code: 'peer_error' }));
  });
});

describe('an answer to a question', () => {
  it('is told by its part, in any version, unless an envelope is there too', () => {
    const of = (...mediaTypes: string[]): Message => ({
      messageId: 'm1',
      role: 'ROLE_USER',
      parts: mediaTypes.map((mediaType) => ({ data: {}, mediaType })),
    });
    expect(classifyMessage(of(ANSWER_MEDIA_TYPE))).toEqual({ kind: 'answer' });
    expect(classifyMessage(of(ANSWER_MEDIA_TYPE.replace('v1', 'v7')))).toEqual({ kind: 'answer' });
    expect(classifyMessage(of(ANSWER_MEDIA_TYPE, CONTROL_MEDIA_TYPE))).toEqual({ kind: 'answer' });
    expect(classifyMessage(of(ANSWER_MEDIA_TYPE, 'application/vnd.holdfast.handoff.v2+json'))).toEqual({
      kind: 'offer',
    });
  });
});
