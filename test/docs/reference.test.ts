import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configurationReference, exitCodeReference } from '../../scripts/write-reference.js';
import { listConfigKeys } from '../../src/node/index.js';

const page = (name: string) => readFileSync(join(import.meta.dirname, '../../docs/reference', name), 'utf8');

describe('the reference (written by npm run docs:write)', () => {
  it('is the table that the configuration is checked against', () => {
    expect(page('configuration.md')).toBe(configurationReference());
    for (const { path } of listConfigKeys()) expect(page('configuration.md')).toContain(`| \`${path}\` |`);
  });

  it('is the table that the command exits by', () => {
    expect(page('exit-codes.md')).toBe(exitCodeReference());
  });
});
