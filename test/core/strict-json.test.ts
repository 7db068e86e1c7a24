import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_LIMITS, HoldfastError, type JsonValue, parseStrictJson } from '../../src/core/index.js';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const parse = (text: string): JsonValue => parseStrictJson(encode(text), DEFAULT_LIMITS);

function refusal(bytes: Uint8Array | string): Record<string, unknown> {
  try {
    parseStrictJson(typeof bytes === 'string' ? encode(bytes) : bytes, DEFAULT_LIMITS);
  } catch (error) {
    if (error instanceof HoldfastError) return { code: error.code, ...error.data };
    throw error;
  }
  return {};
}

describe('strict JSON', () => {
  it('agrees with JSON.parse on every valid document without doubled keys', () => {
    const keys = fc.string({ unit: 'grapheme' }).filter((key) => !['__proto__', 'prototype'].includes(key));
    const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 6 },
        fc.constantFrom(null, true, false),
        fc.maxSafeInteger(),
        fc
          .double({ noNaN: true, noDefaultInfinity: true })
          .filter((each) => !Number.isInteger(each) || Number.isSafeInteger(each)),
        fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0')),
        fc.array(tie('value'), { maxLength: 6 }),
        fc.dictionary(
          keys.filter((key) => !key.includes('\0')),
          tie('value'),
          { maxKeys: 6, noNullPrototype: true },
        ),
      ),
    }));
    fc.assert(
      fc.property(value, fc.constantFrom(0, 1, '\t'), (document, indent) => {
        const text = JSON.stringify(document, null, indent);
        expect(parse(text)).toEqual(JSON.parse(text));
      }),
      { numRuns: 500 },
    );
  });

  it('refuses what JSON.parse refuses, whatever the bytes, and never throws anything else', () => {
    const soup = fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0d8e+-.1tfn \n'), maxLength: 40 });
    fc.assert(
      fc.property(soup, (text) => {
        let plain: unknown;
        try {
          plain = JSON.parse(text);
        } catch {
          expect(refusal(text).code).toBe('json_invalid');
          return;
        }
        if (refusal(text).code === undefined) expect(parse(text)).toEqual(plain);
      }),
      { numRuns: 3000 },
    );
  });

  it.each<[name: string, text: string, problem: string, at: number]>([
    ['a doubled key', '{"a":1,"a":2}', 'duplicate_key', 7],
    ['an escaped twin', '{"a":1,"\\u0061":2}', 'duplicate_key', 7],
    ['a doubled key further in', '[{"x":{"b":1,"b":1}}]', 'duplicate_key', 13],
    ['__proto__', '{"__proto__":{"admin":true}}', 'forbidden_key', 1],
    ['__proto__ in escapes', '{"\\u005f_proto__":1}', 'forbidden_key', 1],
    ['constructor.prototype', '{"constructor":{"prototype":{}}}', 'forbidden_key', 16],
    ['an integer beyond 2^53-1', '[9007199254740993]', 'bad_number', 1],
    ['a large float that is an integer', '1e300', 'bad_number', 0],
    ['infinity', '[1,1e400]', 'bad_number', 3],
    ['a leading zero', '01', 'bad_number', 0],
    ['NaN', 'NaN', 'syntax', 0],
    ['a comment', '[1,/* no */2]', 'syntax', 3],
    ['a trailing comma', '[1,]', 'syntax', 3],
    ['a trailing comma in an object', '{"a":1,}', 'syntax', 7],
    ['two documents', '1 2', 'syntax', 2],
    ['nothing', '', 'syntax', 0],
    ['an open end', '{"a":[1', 'syntax', 7],
    ['a crossed end', '[1}', 'syntax', 2],
    ['a high surrogate alone', '"\\ud800"', 'lone_surrogate', 1],
    ['a low surrogate alone', '"\\udc00"', 'lone_surrogate', 1],
    ['two high surrogates', '"\\ud800\\ud800"', 'lone_surrogate', 1],
    ['NUL', '"a\\u0000"', 'nul_character', 2],
    ['a raw line break', '"a\nb"', 'bad_string', 2],
    ['an unknown escape', '"\\x41"', 'bad_string', 1],
    ['a byte position after wide characters', '["ü€😀",01]', 'bad_number', 13],
  ])('refuses %s', (_, text, problem, at) => {
    expect(refusal(text)).toEqual({ code: 'json_invalid', problem, at });
  });

  it('refuses a byte order mark and bytes that are not UTF-8, and says where', () => {
    expect(refusal(Uint8Array.of(0xef, 0xbb, 0xbf, 0x31))).toMatchObject({ problem: 'byte_order_mark' });
    expect(refusal(Uint8Array.of(0x22, 0x61, 0xff, 0x22))).toMatchObject({ problem: 'bad_utf8', at: 2 });
    // UTF-16, an overlong slash, and a surrogate in UTF-8.
    expect(refusal(Uint8Array.of(0xff, 0xfe, 0x31, 0x00))).toMatchObject({ problem: 'bad_utf8', at: 0 });
    expect(refusal(Uint8Array.of(0x22, 0xc0, 0xaf, 0x22))).toMatchObject({ problem: 'bad_utf8', at: 1 });
    expect(refusal(Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22))).toMatchObject({ problem: 'bad_utf8' });
    expect(refusal(Uint8Array.of(0x22, 0xe2, 0x82))).toMatchObject({ problem: 'bad_utf8' });
  });

  it('bounds depth, values, strings and keys before anything is built, without recursion', () => {
    const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(parse(deep(32))).toBeDefined();
    expect(refusal(deep(33))).toEqual({ code: 'json_too_complex', problem: 'too_deep', at: 32 });
    expect(refusal('['.repeat(1_000_000))).toMatchObject({ problem: 'too_deep' });
    expect(refusal('{"a":'.repeat(500_000))).toMatchObject({ problem: 'too_deep' });
    expect(parse(`[${Array(9_999).fill('0').join()}]`)).toHaveLength(9_999);
    expect(refusal(`[${Array(10_000).fill('0').join()}]`)).toMatchObject({ problem: 'too_many_values' });
    expect(refusal(JSON.stringify('x'.repeat(256 * 1024 + 1)))).toMatchObject({ problem: 'string_too_long' });
    expect(refusal(JSON.stringify({ ['ü'.repeat(129)]: 1 }))).toMatchObject({ problem: 'key_too_long' });
    expect(parse(JSON.stringify({ ['ü'.repeat(128)]: 1 }))).toBeDefined();
    expect(refusal('1'.repeat(2_000_000))).toMatchObject({ problem: 'bad_number' });
  });

  it('keeps a plain constructor key, a pair in escapes, and 3.0 as 3', () => {
    expect(parse('{"constructor":1,"prototype":2}')).toEqual({ constructor: 1, prototype: 2 });
    expect(parse('"\\ud83d\\ude00"')).toBe('😀');
    expect(parse('{"epoch":3.0}')).toEqual({ epoch: 3 });
    expect(parse('9007199254740991')).toBe(Number.MAX_SAFE_INTEGER);
  });
});
