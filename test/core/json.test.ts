import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonical } from '../../src/core/index.js';

const runs = { numRuns: 2000 };
const text = fc.string({ unit: 'binary', maxLength: 40 });
const json = fc.oneof(
  fc.jsonValue({ maxDepth: 6 }),
  fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }),
  fc.dictionary(text, fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constant(null))),
);

describe('canonical JSON', () => {
  it('is byte for byte what another implementation of RFC 8785 writes', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonical(value)).toBe(canonicalize(value));
      }),
      runs,
    );
  });

  it('writes numbers, escapes and the order of keys as the RFC shows', () => {
    const value = {
      '\u20ac': 'Euro',
      '\r': 'return',
      '\ufb33': 'dalet',
      '1': 'one',
      '\ud83d\ude00': 'smile',
      '\u0080': 'control',
      '\u00f6': 'o',
      numbers: [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001, -0, 3.0],
      string: '\u20ac$\u000f\nA\'B"\\\\"/\u007f\u2028',
      literals: [null, true, false],
    };
    expect(canonical(value)).toBe(
      '{"\\r":"return","1":"one","literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27,0,3],' +
        '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/\u007f\u2028","\u0080":"control","\u00f6":"o","\u20ac":"Euro",' +
        '"\ud83d\ude00":"smile","\ufb33":"dalet"}',
    );
  });

  it('leaves out what is undefined, and asks an object that knows its own JSON', () => {
    const at = new Date(Date.UTC(2026, 0, 31));
    expect(canonical({ b: undefined, a: [undefined, at] })).toBe('{"a":[null,"2026-01-31T00:00:00.000Z"]}');
  });

  it('refuses what JSON cannot hold', () => {
    const round: Record<string, unknown> = {};
    round.again = { round };
    const twice = {};
    expect(canonical([twice, twice])).toBe('[{},{}]');
    const none = [undefined, Number.NaN, Infinity, 1n, () => 1, Symbol('s'), round, { a: () => 1 }];
    const halves = ['\ud83d', 'a\ude00', { '\ude00\ud83d': 1 }, ['\ud83d\ud83d\ude00']];
    for (const value of [...none, ...halves]) expect(() => canonical(value)).toThrow(TypeError);
  });
});
