import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { errorReference, withRejectionCodes } from '../../scripts/write-error-docs.js';

it('keeps the error codes in the documents those of the table', () => {
  const wire = readFileSync('docs/wire.md', 'utf8');
  expect(withRejectionCodes(wire)).toBe(wire);
  expect(readFileSync('docs/reference/errors.md', 'utf8')).toBe(errorReference());
});
