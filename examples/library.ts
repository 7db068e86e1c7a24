/** The program of the guide to the library, run in two folders that the command made. */
import assert from 'node:assert/strict';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { enterEmptyFolder, holdfast, initTriageAndBilling } from './support/agents.js';

const folder = await enterEmptyFolder();
await initTriageAndBilling();
await copyFile(join(import.meta.dirname, 'refund/case.json'), 'case.json');

const program = join(import.meta.dirname, 'library/handover.mjs');
await import(program);

const shown = await holdfast('case', 'show', 'CASE-7001', '--dir', 'triage');
assert.equal(shown.case.epoch, 2);
assert.deepEqual(
  shown.effects.map(({ key, state, outcome }: Record<string, string>) => [key, state, outcome]),
  [['refund-pay_B', 'done', 're_1']],
);
assert.deepEqual(
  shown.work.map(({ state }: Record<string, string>) => state),
  ['done'],
);
assert.deepEqual(
  shown.notes.map(({ text }: Record<string, string>) => text),
  ['refunded pay_B'],
);
await folder.remove();
console.log('the program of the guide ran: handed over, refunded once, the late write refused');
