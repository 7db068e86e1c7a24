import { describe, expect, it } from 'vitest';
import { parseUtc } from '../../src/core/index.js';

describe('UTC times', () => {
  it('[R-037] are read with Z only, with or without milliseconds', () => {
    expect(parseUtc('2026-01-31T10:00:00Z')?.getTime()).toBe(Date.UTC(2026, 0, 31, 10));
    expect(parseUtc('2026-01-31T10:00:00.250Z')?.getTime()).toBe(Date.UTC(2026, 0, 31, 10, 0, 0, 250));
    expect(parseUtc('2028-02-29T23:59:59Z')).not.toBeNull();
  });

  it.each([
    '2026-02-30T10:00:00Z',
    '2027-02-29T10:00:00Z',
    '2026-04-31T10:00:00.000Z',
    '2026-13-01T10:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T10:00:60Z',
    '2026-01-31T10:00:00+01:00',
    '2026-01-31T10:00:00',
    '2026-01-31 10:00:00Z',
    '2026-01-31T10:00:00.1Z',
    '2026-01-31T10:00:00z',
    '2026-01-31',
    '',
  ])('[R-037] refuses %j', (text) => {
    expect(parseUtc(text)).toBeNull();
  });
});
