import {
  type FieldError,
  HoldfastError,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  MAX_FIELD_ERRORS,
} from '../core/index.js';
import type { Message, Part } from './wire.js';

/** ProtoJSON reads both alphabets, padded or not. */
const BASE64 = /^(?:[A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}$/;
const CONTENTS = ['text', 'raw', 'url', 'data'] as const;

const snakes = new Map<string, string>();

/** The second spelling of a field of ours. */
function snakeOf(name: string): string {
  let snake = snakes.get(name);
  if (snake === undefined) {
    snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    snakes.set(name, snake);
  }
  return snake;
}

/** One object being read by its two spellings; collects every problem instead of stopping at the first. */
class Fields {
  private readonly doubled = new Set<string>();

  constructor(
    private readonly source: JsonObject,
    private readonly path: string,
    private readonly problems: FieldError[],
  ) {}

  /** ProtoJSON: null is the same as absent (but not inside `data`, which may be any JSON value). */
  get(name: string): JsonValue | undefined {
    return this.raw(name) ?? undefined;
  }

  raw(name: string): JsonValue | undefined {
    const snake = snakeOf(name);
    const other = snake !== name && Object.hasOwn(this.source, snake);
    if (!Object.hasOwn(this.source, name)) return other ? this.source[snake] : undefined;
    if (other && !this.doubled.has(name)) {
      this.doubled.add(name);
      this.problem(name, `is given twice, as ${name} and ${snake}`);
    }
    return this.source[name];
  }

  string(name: string): string | undefined {
    const value = this.get(name);
    if (value === undefined || typeof value === 'string') return value;
    this.problem(name, 'must be a string');
    return undefined;
  }

  strings(name: string): string[] | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value;
    this.problem(name, 'must be an array of strings');
    return undefined;
  }

  object(name: string): JsonObject | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (isJsonObject(value)) return value;
    this.problem(name, 'must be an object');
    return undefined;
  }

  problem(name: string, problem: string): void {
    this.problems.push({ path: name === '' ? this.path : `${this.path}.${name}`, problem });
  }
}

function without<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

function parsePart(value: JsonValue, path: string, problems: FieldError[]): Part {
  if (!isJsonObject(value)) {
    problems.push({ path, problem: 'must be an object' });
    return {};
  }
  const fields = new Fields(value, path, problems);
  const data = fields.raw('data');
  const part = without<Part>({
    text: fields.string('text'),
    raw: fields.string('raw'),
    url: fields.string('url'),
    data,
    metadata: fields.object('metadata'),
    filename: fields.string('filename'),
    mediaType: fields.string('mediaType'),
  });
  const given = CONTENTS.filter((name) => (name === 'data' ? data : fields.get(name)) !== undefined);
  if (given.length !== 1) {
    const found = given.length === 0 ? 'none' : given.join(' and ');
    fields.problem('', `must hold exactly one of text, raw, url and data, and holds ${found}`);
  }
  if (part.raw !== undefined && (!BASE64.test(part.raw) || part.raw.replace(/=+$/, '').length % 4 === 1)) {
    fields.problem('raw', 'must be base64');
  }
  return part;
}

function parseParts(value: JsonValue | undefined, problems: FieldError[]): Part[] {
  if (!Array.isArray(value) || value.length === 0) {
    problems.push({ path: 'message.parts', problem: 'must be an array with at least one part' });
    return [];
  }
  return value.map((part, index) => parsePart(part, `message.parts.${index}`, problems));
}

/**
 * Reads an A2A message as it came, before any codec with tolerance sees it. Field names are taken in camelCase or
 * snake_case, never both; unknown fields are ignored, as the protocol wants.
 * @throws message_invalid naming up to three fields; `data.problems` counts all
 */
export function parseMessage(value: JsonValue): Message {
  const problems: FieldError[] = [];
  if (!isJsonObject(value)) {
    throw new HoldfastError('message_invalid', undefined, {
      fields: [{ path: 'message', problem: 'must be an object' }],
      data: { problems: 1 },
    });
  }
  const fields = new Fields(value, 'message', problems);
  const messageId = fields.string('messageId') ?? '';
  if ((fields.get('messageId') ?? '') === '') fields.problem('messageId', 'is required');
  if (fields.get('role') !== 'ROLE_USER') fields.problem('role', 'must be ROLE_USER');
  const message = without<Message>({
    messageId,
    role: 'ROLE_USER',
    parts: parseParts(fields.get('parts'), problems),
    contextId: fields.string('contextId'),
    taskId: fields.string('taskId'),
    metadata: fields.object('metadata'),
    extensions: fields.strings('extensions'),
    referenceTaskIds: fields.strings('referenceTaskIds'),
  });
  if (problems.length === 0) return message;
  throw new HoldfastError('message_invalid', undefined, {
    fields: problems.slice(0, MAX_FIELD_ERRORS),
    data: { problems: problems.length },
  });
}
