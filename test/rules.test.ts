import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkRules } from '../scripts/check-rules.js';

/** What is wrong with each file: the rule that has to name it, or null. */
const CASES: readonly (readonly [file: string, source: string, rule: string | null])[] = [
  ['src/core/index.ts', 'export interface Id { id: string }', null],
  ['src/faults/index.ts', 'export const point = 1;', null],
  ['src/core/door.ts', "export { point } from '../faults/index.js';", null],
  ['src/ledger/index.ts', "export type { Id } from '../core/index.js';", null],
  ['src/ledger/inner.ts', 'export const inner = 1;', null],
  ['src/ledger/hash.ts', "import { createHash } from 'node:crypto';\nexport { createHash };", null],
  ['src/storage/index.ts', "import Database from 'better-sqlite3';\nexport const open = Database;", null],
  ['src/node/index.ts', "export { open } from '../storage/index.js';", null],
  ['src/node/start.ts', "import { readFileSync } from 'node:fs';\nexport { readFileSync };", null],
  ['src/envelope/index.ts', 'export interface Envelope { id: string }', null],
  ['src/handoff/index.ts', 'export const offer = 1;', null],
  ['src/index.ts', "export { open } from './node/index.js';", null],

  [
    'src/core/up.ts',
    "import type { Id } from '../ledger/index.js';\nexport type Up = Id;",
    'only-downward-core',
  ],
  [
    'src/faults/up.ts',
    "import type { Id } from '../core/index.js';\nexport type Up = Id;",
    'only-downward-faults',
  ],
  ['src/node/up.ts', "export { main } from '../cli/index.js';", 'only-downward-node'],
  ['src/cli/index.ts', "export { open as main } from '../index.js';", 'public-door-is-top'],
  ['src/handoff/door.ts', "export { inner } from '../ledger/inner.js';", 'one-door'],
  ['test/door.ts', "export { inner } from '../src/ledger/inner.js';", 'one-door-outside'],
  ['src/utils/index.ts', "export { offer } from '../handoff/index.js';", 'known-room'],
  ['src/handoff/io.ts', "import { readFileSync } from 'node:fs';\nexport { readFileSync };", 'domain-no-io'],
  ['src/handoff/http.ts', "import { request } from 'undici';\nexport { request };", 'domain-no-adapters'],
  ['src/node/sdk.ts', "import type { Task } from '@a2a-js/sdk';\nexport type T = Task;", 'sdk-in-transport'],
  ['src/node/sql.ts', "import Database from 'better-sqlite3';\nexport { Database };", 'database-in-storage'],
  ['src/demo/index.ts', "export { open } from '../storage/index.js';", 'node-picks-storage'],
  ['src/ledger/envelope.ts', "export type { Envelope } from '../envelope/index.js';", 'ledger-is-opaque'],
  ['src/prove/index.ts', "export type { Id } from '../ledger/index.js';", 'prove-by-the-wire'],
  ['src/audit/a.ts', "export { b } from './b.js';\nexport const a = 1;", 'no-cycles'],
  ['src/audit/b.ts', "export { a } from './a.js';\nexport const b = 1;", null], // a cycle is named once
  ['src/trust/gone.ts', "export { gone } from './nowhere.js';", 'resolvable'],
];

describe('import rules', () => {
  let tree: string;

  beforeEach(async () => {
    tree = await mkdtemp(join(tmpdir(), 'holdfast-rules-'));
    for (const [file, source] of CASES) {
      await mkdir(dirname(join(tree, file)), { recursive: true });
      await writeFile(join(tree, file), source);
    }
  });

  afterEach(() => rm(tree, { recursive: true, force: true }));

  it('name every wrong import, type imports included, and no allowed one', async () => {
    const { modules, violations } = await checkRules(tree);

    const blamed = new Set(violations.map((line) => line.replace(/^([\w-]+): (\S+) -> .*$/, '$1 $2')));
    const missed = CASES.filter(([file, , rule]) => rule !== null && !blamed.has(`${rule} ${file}`));
    const allowed = CASES.filter(([, , rule]) => rule === null).map(([file]) => file);
    const accused = violations.filter((line) => allowed.some((file) => line.includes(`: ${file} -> `)));

    expect({ missed, accused, modules }).toEqual({
      missed: [],
      // The packages are not installed in this tree.
      accused: ['resolvable: src/storage/index.ts -> better-sqlite3'],
      modules: CASES.filter(([file]) => file.startsWith('src/')).length,
    });
  });
});
