import { describe, expect, it } from 'vitest';
import { HoldfastError, type JsonValue } from '../../src/core/index.js';
import {
  bareMediaType,
  CONTROL_MEDIA_TYPE,
  classifyMessage,
  EXTENSION_URI,
  type Message,
  type Part,
  parseMessage,
} from '../../src/protocol/index.js';

const plain = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] };

function problems(value: JsonValue): Record<string, string> {
  try {
    parseMessage(value);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.code).toBe('message_invalid');
    return Object.fromEntries(error.fields.map(({ path, problem }) => [path, problem]));
  }
  return {};
}

describe('an A2A message', () => {
  it('is read with every field, in camelCase', () => {
    const message = {
      ...plain,
      contextId: 'c',
      taskId: 't',
      metadata: { a: 1 },
      extensions: ['urn:x'],
      referenceTaskIds: ['t0'],
      parts: [
        { text: '' },
        { raw: 'aGk=', filename: 'hi.txt', mediaType: 'text/plain' },
        { url: 'https://files.example/1', metadata: { sha256: 'x' } },
        { data: null },
      ],
    };
    expect(parseMessage(message)).toEqual(message);
  });

  it('is read in snake_case, drops what it does not know, and takes null for absent', () => {
    const message = {
      message_id: 'm1',
      role: 'ROLE_USER',
      parts: [{ text: 'hi', media_type: 'text/plain', url: null, kind: 'text' }],
      context_id: 'c',
      task_id: null,
      reference_task_ids: [],
      later: true,
    };
    expect(parseMessage(message)).toEqual({
      messageId: 'm1',
      role: 'ROLE_USER',
      parts: [{ text: 'hi', mediaType: 'text/plain' }],
      contextId: 'c',
      referenceTaskIds: [],
    });
  });

  it('is refused when one field has both spellings, whichever is first', () => {
    expect(problems({ ...plain, message_id: 'm2' })).toEqual({
      'message.messageId': 'is given twice, as messageId and message_id',
    });
    const part = { data: {}, media_type: 'text/plain', mediaType: 'application/json' };
    expect(Object.keys(problems({ ...plain, parts: [part] }))).toEqual(['message.parts.0.mediaType']);
  });

  it.each<[JsonValue, string[]]>([
    ['text', ['message']],
    [[], ['message']],
    [{ ...plain, messageId: '' }, ['message.messageId']],
    [{ ...plain, messageId: 7 }, ['message.messageId']],
    [{ ...plain, role: 'ROLE_AGENT' }, ['message.role']],
    [{ ...plain, role: 'user' }, ['message.role']],
    [{ ...plain, parts: [] }, ['message.parts']],
    [{ ...plain, parts: {} }, ['message.parts']],
    [{ ...plain, parts: ['x'] }, ['message.parts.0']],
    [{ ...plain, parts: [{}] }, ['message.parts.0']],
    [{ ...plain, parts: [{ mediaType: 'text/plain' }] }, ['message.parts.0']],
    [{ ...plain, parts: [{ text: 'a', url: 'b' }] }, ['message.parts.0']],
    [{ ...plain, parts: [{ text: 'a', data: null }] }, ['message.parts.0']],
    [{ ...plain, parts: [{ raw: 'a*b' }] }, ['message.parts.0.raw']],
    [{ ...plain, parts: [{ raw: 'abcde' }] }, ['message.parts.0.raw']],
    [{ ...plain, parts: [{ text: 5 }] }, ['message.parts.0.text']],
    [{ ...plain, metadata: [] }, ['message.metadata']],
    [{ ...plain, extensions: 'urn:x' }, ['message.extensions']],
    [{ ...plain, extensions: [1] }, ['message.extensions']],
    [{ ...plain, contextId: {} }, ['message.contextId']],
  ])('is refused: %j', (value, paths) => {
    expect(Object.keys(problems(value))).toEqual(paths);
  });

  it('[R-069] has at most three problems named, and all counted', () => {
    const value = { parts: [{}, {}, {}], contextId: 1 };
    expect(() => parseMessage(value)).toThrow(
      expect.objectContaining({
        fields: [expect.anything(), expect.anything(), expect.anything()],
        data: { problems: 6 },
      }),
    );
  });
});

describe('classification', () => {
  const message = (parts: Part[], extensions?: string[]): Message => ({
    messageId: 'm',
    role: 'ROLE_USER',
    parts,
    ...(extensions === undefined ? {} : { extensions }),
  });
  const envelope = 'application/vnd.holdfast.handoff.v2+json';

  it.each<[string, Part]>([
    ['the version we speak', { data: {}, mediaType: envelope }],
    ['a version we do not', { data: {}, mediaType: 'application/vnd.holdfast.handoff.v99+json' }],
    [
      'other letter case and parameters',
      { data: {}, mediaType: 'Application/VND.Holdfast.handoff.V2+JSON; q=1' },
    ],
    ['a part that cannot hold one', { text: '{}', mediaType: envelope }],
    ['a raw part', { raw: 'e30=', mediaType: envelope }],
  ])('[R-022] sees an offer in %s', (_, part) => {
    expect(classifyMessage(message([{ text: 'hi' }, part]))).toEqual({ kind: 'offer' });
  });

  it('sees an offer in the extension alone, and none in other types', () => {
    expect(classifyMessage(message([{ text: 'hi' }], [EXTENSION_URI]))).toEqual({ kind: 'offer' });
    for (const mediaType of [
      'application/vnd.other.handoff.v2+json',
      'application/vnd.holdfast.handoff.vX+json',
      'application/vnd.holdfast.handoff.v2+jsonx',
      'application/json',
    ]) {
      expect(classifyMessage(message([{ data: {}, mediaType }]))).toEqual({ kind: 'plain' });
    }
    expect(classifyMessage(message([{ text: 'hi' }]))).toEqual({ kind: 'plain' });
  });

  it('knows another vendor by name only', () => {
    const part = { data: {}, mediaType: 'application/vnd.acme.handoff.v2+json' };
    expect(classifyMessage(message([part]), 'acme')).toEqual({ kind: 'offer' });
    expect(classifyMessage(message([part]))).toEqual({ kind: 'plain' });
  });

  it('sees a control message of any version and in any kind of part, unless an envelope is there too', () => {
    const control = { data: {}, mediaType: `${CONTROL_MEDIA_TYPE}; v=1` };
    expect(classifyMessage(message([control], [EXTENSION_URI]))).toEqual({ kind: 'control' });
    expect(classifyMessage(message([control, { data: {}, mediaType: envelope }]))).toEqual({ kind: 'offer' });
    for (const part of [
      { text: '', mediaType: CONTROL_MEDIA_TYPE },
      { raw: 'e30=', mediaType: CONTROL_MEDIA_TYPE },
      { data: {}, mediaType: CONTROL_MEDIA_TYPE.replace('v1', 'v9') },
    ]) {
      expect(classifyMessage(message([part]))).toEqual({ kind: 'control' });
    }
    expect(
      classifyMessage(message([{ data: {}, mediaType: 'application/vnd.other.control.v1+json' }])),
    ).toEqual({
      kind: 'plain',
    });
    expect(bareMediaType(' Text/Plain ; charset=utf-8')).toBe('text/plain');
  });
});
