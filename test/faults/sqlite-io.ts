/**
 * Writes notes to a ledger while the operating system fails it, and judges what came of it: `sqlite-io.ts FILE THREAD CODES`, where
 * THREAD is `main` or `writer`, and CODES are the error codes that a command may end with. Run it under a tracer that injects the
 * fault, with a ledger at FILE that `sqlite-io-cases.ts` has made. Prints what it saw as JSON; exits 1 where that is wrong.
 */
import { strict as assert } from 'node:assert';
import { setTimeout } from 'node:timers/promises';
import { verifyChain } from '../../src/audit/index.js';
import { isHoldfastError } from '../../src/core/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import { asTriage, ref } from '../storage/suite/fixtures.js';

const [file = '', thread = '', codes = ''] = process.argv.slice(2);
const allowed = new Set(codes.split(','));
/** What each command ended with, by its text. */
const ends = new Map<string, string>();
let warnings = 0;

const ledger = await openSqliteLedger({
  file,
  onWarning: () => {
    warnings += 1;
  },
});

async function write(text: string): Promise<string> {
  const end = await ledger.addNote({ ...asTriage, text }).then(
    () => 'ok',
    (error: unknown) => (isHoldfastError(error) ? error.code : String(error)),
  );
  ends.set(text, end);
  return end;
}

const together = (name: string, count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => write(`${name}.${n}`)));

async function untilThreadIsReady(): Promise<void> {
  let ready = false;
  process.once('worker', (worker) =>
    worker.on('message', ({ say }: { say: string }) => {
      ready ||= say === 'ready';
    }),
  );
  await together('first', 2);
  // It keeps no process alive, so somebody has to wait.
  for (let n = 0; n < 1000 && !ready; n += 1) await setTimeout(20);
  assert.ok(ready, 'the writer thread takes part');
}

if (thread === 'writer') await untilThreadIsReady();
const size = thread === 'writer' ? 8 : 1;
for (let n = 0; n < 60; n += 1) {
  const results = await together(`n${n}`, size);
  // What a person or a supervisor does after an error: the same again a little later.
  if (results.some((end) => end !== 'ok')) await setTimeout(20);
}

const failed = [...ends.values()].filter((end) => end !== 'ok');
const last = await together('healed', 3);
assert.deepEqual(last, ['ok', 'ok', 'ok'], 'the ledger works again once it is healed');
for (const end of failed) assert.ok(allowed.has(end), `a command ended with ${end}`);
await ledger.close();

const again = await reopened();
const found = await textsIn(again);
await again.close();
for (const [text, end] of ends) {
  if (end === 'ok')
    assert.equal(found.get(text), 1, `acknowledged and ${found.get(text) ?? 0} times there: ${text}`);
  if (end === 'ledger_unavailable')
    assert.equal(found.has(text), false, `refused for certain, and there: ${text}`);
}

/** The tracer counts by thread: this one may come to its faulty calls only now, and a supervisor starts what did not start again. */
async function reopened(): Promise<LedgerStore> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await openSqliteLedger({ file });
    } catch (error) {
      if (tries === 20 || !isHoldfastError(error) || !allowed.has(error.code)) throw error;
      await setTimeout(20);
    }
  }
}

async function textsIn(store: LedgerStore): Promise<Map<string, number>> {
  const audit = await store.readAudit(ref());
  assert.deepEqual(verifyChain(audit), { ok: true, entries: audit.length });
  const counts = new Map<string, number>();
  for (const { text } of await store.listNotes(ref())) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

const unknown = failed.filter((end) => end === 'outcome_unknown').length;
const acknowledged = [...ends.values()].filter((end) => end === 'ok').length;
process.stdout.write(
  `${JSON.stringify({ acknowledged, refused: failed.length - unknown, unknown, warnings })}\n`,
);
