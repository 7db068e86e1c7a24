import { HoldfastError } from './errors.js';
import type { JsonValue } from './json.js';
import type { Limits } from './limits.js';

/** What was wrong with the bytes; stable, carried in the error's data as `problem`. */
export type JsonProblem =
  | 'bad_utf8'
  | 'byte_order_mark'
  | 'syntax'
  | 'bad_string'
  | 'nul_character'
  | 'lone_surrogate'
  | 'bad_number'
  | 'duplicate_key'
  | 'forbidden_key'
  | 'too_deep'
  | 'too_many_values'
  | 'string_too_long'
  | 'key_too_long';

const TOO_COMPLEX: ReadonlySet<JsonProblem> = new Set([
  'too_deep',
  'too_many_values',
  'string_too_long',
  'key_too_long',
]);

const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
/** Longer than any number that JSON.stringify writes; bounds the work a number can cause. */
const MAX_NUMBER_LENGTH = 400;

type StrictLimits = Pick<Limits, 'maxDepth' | 'maxNodes' | 'maxStringBytes' | 'maxKeyBytes'>;

/** An open container. `keys` is null for an array. */
interface Frame {
  readonly keys: Set<string> | null;
  /** The key this container is the value of, to see `constructor: { prototype: … }`. */
  readonly under: string | null;
  key: string | null;
}

type Expect = 'value' | 'valueOrEnd' | 'key' | 'keyOrEnd' | 'commaOrEnd' | 'nothing';

/** One pass over the text, without recursion: everything JSON.parse would accept in silence is found here. */
class Scanner {
  private at = 0;
  private values = 0;
  private readonly stack: Frame[] = [];

  constructor(
    private readonly text: string,
    private readonly limits: StrictLimits,
  ) {}

  scan(): void {
    let expect: Expect = 'value';
    for (;;) {
      this.skipSpace();
      if (expect === 'nothing') {
        if (this.at < this.text.length) this.fail('syntax');
        return;
      }
      expect = this.step(expect);
    }
  }

  private step(expect: Exclude<Expect, 'nothing'>): Expect {
    const char = this.text[this.at];
    if (expect === 'commaOrEnd') {
      if (char !== ',') return this.close();
      this.at += 1;
      return this.top().keys === null ? 'value' : 'key';
    }
    if (expect === 'valueOrEnd' && char === ']') return this.close();
    if (expect === 'keyOrEnd' && char === '}') return this.close();
    return expect === 'key' || expect === 'keyOrEnd' ? this.key() : this.value();
  }

  private key(): Expect {
    const start = this.at;
    if (this.text[start] !== '"') this.fail('syntax');
    this.string(this.limits.maxKeyBytes, 'key_too_long');
    const raw = this.text.slice(start, this.at);
    const key: string = raw.includes('\\') ? JSON.parse(raw) : raw.slice(1, -1);
    const frame = this.top();
    if (key === '__proto__' || (key === 'prototype' && frame.under === 'constructor')) {
      this.fail('forbidden_key', start);
    }
    if (frame.keys?.has(key)) this.fail('duplicate_key', start);
    frame.keys?.add(key);
    frame.key = key;
    this.skipSpace();
    if (this.text[this.at] !== ':') this.fail('syntax');
    this.at += 1;
    return 'value';
  }

  private value(): Expect {
    this.values += 1;
    if (this.values > this.limits.maxNodes) this.fail('too_many_values');
    const char = this.text[this.at];
    if (char === '{' || char === '[') return this.open(char === '{');
    if (char === '"') this.string(this.limits.maxStringBytes, 'string_too_long');
    else if (char === '-' || (char !== undefined && char >= '0' && char <= '9')) this.number();
    else this.literal();
    return this.stack.length === 0 ? 'nothing' : 'commaOrEnd';
  }

  private open(isObject: boolean): Expect {
    if (this.stack.length >= this.limits.maxDepth) this.fail('too_deep');
    const under = this.stack.at(-1)?.key ?? null;
    this.stack.push({ keys: isObject ? new Set() : null, under, key: null });
    this.at += 1;
    return isObject ? 'keyOrEnd' : 'valueOrEnd';
  }

  private close(): Expect {
    if (this.text[this.at] !== (this.top().keys === null ? ']' : '}')) this.fail('syntax');
    this.stack.pop();
    this.at += 1;
    return this.stack.length === 0 ? 'nothing' : 'commaOrEnd';
  }

  private literal(): void {
    const word = ['true', 'false', 'null'].find((each) => this.text.startsWith(each, this.at));
    if (word === undefined) this.fail('syntax');
    this.at += word.length;
  }

  private number(): void {
    const start = this.at;
    while (this.at < this.text.length && '+-.0123456789eE'.includes(this.text.charAt(this.at))) {
      this.at += 1;
      if (this.at - start > MAX_NUMBER_LENGTH) this.fail('bad_number', start);
    }
    const text = this.text.slice(start, this.at);
    if (!NUMBER.test(text)) this.fail('bad_number', start);
    const number = Number(text);
    // Beyond 2^53-1 two different texts are one number: the digest would no longer name what was sent.
    if (!Number.isFinite(number)) this.fail('bad_number', start);
    if (Number.isInteger(number) && !Number.isSafeInteger(number)) this.fail('bad_number', start);
  }

  private string(maxBytes: number, tooLong: JsonProblem): void {
    const { text, at: start } = this;
    let at = start + 1;
    let bytes = 0;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code === 0x22) break;
      if (code === 0x5c) {
        this.at = at;
        bytes += this.escape();
        at = this.at;
      } else if (code >= 0x20) {
        bytes += code < 0x80 ? 1 : utf8Length(code);
        at += 1;
      } else {
        // A control character, or the end of the text.
        this.at = at;
        this.fail('bad_string');
      }
      if (bytes > maxBytes) this.fail(tooLong, start);
    }
    this.at = at + 1;
  }

  /** Moves past one escape (a surrogate pair is one) and returns its length in UTF-8. */
  private escape(): number {
    const kind = this.text.charAt(this.at + 1);
    if (kind !== 'u') {
      if (kind === '' || !'"\\/bfnrt'.includes(kind)) this.fail('bad_string');
      this.at += 2;
      return 1;
    }
    const code = this.hex(this.at + 2);
    if (code === null) this.fail('bad_string');
    if (code === 0) this.fail('nul_character');
    if (code < 0xd800 || code > 0xdfff) {
      this.at += 6;
      return utf8Length(code);
    }
    // UTF-8 cannot hold half a pair, so that what is stored and what was hashed would differ.
    const low = this.text.startsWith('\\u', this.at + 6) ? this.hex(this.at + 8) : null;
    if (code > 0xdbff || low === null || low < 0xdc00 || low > 0xdfff) this.fail('lone_surrogate');
    this.at += 12;
    return 4;
  }

  private hex(at: number): number | null {
    const digits = this.text.slice(at, at + 4);
    return /^[0-9a-fA-F]{4}$/.test(digits) ? Number.parseInt(digits, 16) : null;
  }

  private skipSpace(): void {
    for (let code = this.text.charCodeAt(this.at); code <= 0x20; code = this.text.charCodeAt(this.at)) {
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at += 1;
    }
  }

  private top(): Frame {
    return this.stack.at(-1) ?? this.fail('syntax');
  }

  private fail(problem: JsonProblem, at: number = this.at): never {
    throw jsonError(problem, new TextEncoder().encode(this.text.slice(0, at)).length);
  }
}

/** Of one UTF-16 unit; each half of a surrogate pair counts two of the pair's four bytes. */
function utf8Length(code: number): number {
  if (code < 0x80) return 1;
  return code < 0x800 || (code >= 0xd800 && code <= 0xdfff) ? 2 : 3;
}

function jsonError(problem: JsonProblem, at: number): HoldfastError {
  return new HoldfastError(TOO_COMPLEX.has(problem) ? 'json_too_complex' : 'json_invalid', undefined, {
    data: { at, problem },
  });
}

function decodes(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // Only a refusal pays for finding the place: the longest prefix that still decodes.
    let [good, bad] = [0, bytes.length];
    while (good < bad) {
      const middle = Math.ceil((good + bad) / 2);
      if (decodes(bytes.subarray(0, middle))) good = middle;
      else bad = middle - 1;
    }
    throw jsonError('bad_utf8', good);
  }
}

/**
 * JSON in which every document has one meaning: no duplicate or prototype keys, no number that changes when read, no half
 * characters, and bounded in depth and size before anything is built.
 * @throws json_invalid, json_too_complex with `data` `{ at: byte offset, problem }`
 */
export function parseStrictJson(bytes: Uint8Array, limits: StrictLimits): JsonValue {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) throw jsonError('byte_order_mark', 0);
  const text = decode(bytes);
  new Scanner(text, limits).scan();
  return JSON.parse(text) as JsonValue;
}
