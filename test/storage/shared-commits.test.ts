import { execFile } from 'node:child_process';
import { on, once } from 'node:events';
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { verifyChain } from '../../src/audit/index.js';
import { judge, type LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import { connect } from '../../src/storage/sqlite/connection.js';
import { type SqliteEngineOptions, sqliteEngine } from '../../src/storage/sqlite/engine.js';
import { migrate } from '../../src/storage/sqlite/migrate.js';
import { createStore } from '../../src/storage/store.js';
import { acceptance, asTriage, KIND, offered, openCase, ref, TestClock } from './suite/fixtures.js';

let folder: string;
let file: string;
let clock: TestClock;
const ledgers: LedgerStore[] = [];
const warnings: string[] = [];
const onWarning = (_: unknown, message: string) => void warnings.push(message);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  file = join(folder, 'ledger.db');
  clock = new TestClock();
  warnings.length = 0;
});

afterEach(async () => {
  await Promise.all(ledgers.splice(0).map((ledger) => ledger.close()));
  rmSync(folder, { recursive: true });
});

async function withCase(ledger: LedgerStore): Promise<LedgerStore> {
  ledgers.push(ledger);
  await ledger.putKind('acme', KIND);
  await openCase(ledger, 'CASE-1');
  return ledger;
}

const open = async (maxWaiting?: number) =>
  withCase(
    await openSqliteLedger({ file, clock, onWarning, ...(maxWaiting === undefined ? {} : { maxWaiting }) }),
  );

/** The same, with a hand on its connection and its bounds. */
async function openOn(
  over: Partial<SqliteEngineOptions>,
): Promise<{ ledger: LedgerStore; db: Database.Database }> {
  const db = await connect(file, performance.now());
  migrate(db, clock.in(0));
  const options = { clock, lockWaitMs: 5000, maxWaiting: 1000, onWarning, ...over };
  return { db, ledger: await withCase(createStore(sqliteEngine(db, options))) };
}

const note = (ledger: LedgerStore, text: string) => ledger.addNote({ ...asTriage, text });
const notes = (ledger: LedgerStore, count: number, textOf = (n: number) => `note ${n}`) =>
  Promise.allSettled(Array.from({ length: count }, (_, n) => note(ledger, textOf(n))));

/** The writer thread, once it has begun to take part. */
async function threadOf(ledger: LedgerStore): Promise<Worker> {
  const started = once(process, 'worker') as Promise<[Worker]>;
  await notes(ledger, 2);
  const [worker] = await started;
  for await (const [report] of on(worker, 'message')) if (report.say === 'ready') break;
  return worker;
}

function byHand(sql: string): void {
  const db = new Database(file, { timeout: 1000 });
  db.exec(sql);
  db.close();
}

/** Frames that end a transaction, in a log that nothing was copied out of yet. */
function commits(): number {
  const wal = readFileSync(`${file}-wal`);
  const frameBytes = 24 + wal.readUInt32BE(8);
  let count = 0;
  for (let at = 32; at + frameBytes <= wal.length; at += frameBytes) {
    if (wal.readUInt32BE(at + 4) > 0 && wal.readUInt32BE(at + 8) === wal.readUInt32BE(16)) count += 1;
  }
  return count;
}

const codes = (results: PromiseSettledResult<unknown>[]) =>
  results.map((result) => (result.status === 'fulfilled' ? 'ok' : result.reason.code));

describe.each(['main thread', 'writer thread'])('commands that wait together, on the %s', (where) => {
  const begin = async () => {
    const ledger = where === 'writer thread' ? await open() : (await openOn({ judge })).ledger;
    if (where === 'writer thread') await threadOf(ledger);
    return ledger;
  };
  const written = async (ledger: LedgerStore) => (await ledger.listNotes(ref())).map(({ text }) => text);

  it('share a transaction', async () => {
    const ledger = await begin();
    const before = commits();
    expect(codes(await notes(ledger, 64))).toEqual(Array.from({ length: 64 }, () => 'ok'));
    expect(commits() - before).toBe(1);
    const audit = await ledger.readAudit(ref());
    expect(verifyChain(audit)).toEqual({ ok: true, entries: audit.length });
  });

  it('keep the order in which they came', async () => {
    const ledger = await begin();
    const before = (await written(ledger)).length;
    await notes(ledger, 300);
    expect((await written(ledger)).slice(before)).toEqual(Array.from({ length: 300 }, (_, n) => `note ${n}`));
  });

  it('[R-079] fail one by one: refused, wrong, or stopped by the database', async () => {
    const ledger = await begin();
    byHand(`CREATE TRIGGER fault BEFORE INSERT ON notes WHEN NEW.text = 'note 3'
      BEGIN SELECT RAISE(ABORT, 'fault'); END`);
    const results = await Promise.allSettled([
      note(ledger, 'note 1'),
      ledger.addNote({ ...asTriage, epoch: 2, text: 'stale' }),
      note(ledger, 'note 3'),
      ledger.openCase({ ref: ref('CASE-2'), kind: 'refund', owner: '', epoch: 1, actor: 'x' }),
      note(ledger, 'note 5'),
    ]);
    expect(codes(results)).toEqual(['ok', 'epoch_stale', 'internal', 'usage', 'ok']);
    expect(results[1]).toMatchObject({
      reason: { name: 'HoldfastError', data: { presented: 2, current: 3 } },
    });
    expect((await written(ledger)).slice(-2)).toEqual(['note 1', 'note 5']);
    const audit = await ledger.readAudit(ref());
    expect(audit.slice(-3).map(({ type }) => type)).toEqual(['note_added', 'write_refused', 'note_added']);
    expect(verifyChain(audit)).toEqual({ ok: true, entries: audit.length });
  });

  it('fail together where one of them ends the transaction', async () => {
    const ledger = await begin();
    const before = await ledger.snapshot(ref());
    byHand(`CREATE TRIGGER fault BEFORE INSERT ON notes WHEN NEW.text = 'note 2'
      BEGIN SELECT RAISE(ROLLBACK, 'fault'); END`);
    expect(codes(await notes(ledger, 5))).toEqual(Array.from({ length: 5 }, () => 'internal'));
    expect(await ledger.snapshot(ref())).toEqual(before);
    byHand('DROP TRIGGER fault');
    expect(codes(await notes(ledger, 5))).toEqual(Array.from({ length: 5 }, () => 'ok'));
  });

  it('are judged at the time of the clock that was given', async () => {
    const ledger = await begin();
    await offered(ledger, clock);
    clock.advance(61_000);
    const late = acceptance(clock, { acceptBy: clock.in(-1000) });
    const [late1, , late2] = await Promise.all([ledger.accept(late), note(ledger, 'x'), ledger.accept(late)]);
    expect([late1, late2]).toMatchObject([{ code: 'offer_expired' }, { code: 'offer_expired' }]);
    expect((await ledger.listNotes(ref())).at(-1)?.at).toBe(clock.in(0));
  });

  it('are all carried out before the ledger closes', async () => {
    const ledger = await begin();
    const before = (await written(ledger)).length;
    const [results] = await Promise.all([notes(ledger, 300), ledger.close()]);
    expect(codes(results)).toEqual(Array.from({ length: 300 }, () => 'ok'));
    await expect(note(ledger, 'late')).rejects.toMatchObject({ code: 'ledger_unavailable' });
    const again = await openSqliteLedger({ file, clock });
    ledgers.push(again);
    expect((await again.listNotes(ref())).length).toBe(before + 300);
  });
});

describe('a full database', () => {
  it('acknowledges nothing that it cannot write, and goes on once there is room', async () => {
    const { ledger, db } = await openOn({ judge });
    const pages = db.pragma('page_count', { simple: true }) as number;
    const before = await ledger.snapshot(ref());
    db.pragma(`max_page_count = ${pages}`);
    const results = await notes(ledger, 40, (n) => `${n}`.repeat(4000));
    expect(new Set(codes(results))).toEqual(new Set(['ledger_unavailable']));
    expect(await ledger.snapshot(ref())).toEqual(before);
    db.pragma(`max_page_count = ${pages + 1000}`);
    expect(codes(await notes(ledger, 2))).toEqual(['ok', 'ok']);
    expect(verifyChain(await ledger.readAudit(ref()))).toEqual({ ok: true, entries: 3 });
  });
});

describe('the queue', () => {
  it('is busy at once for more than may wait', async () => {
    const ledger = await open(3);
    expect(codes(await notes(ledger, 5))).toEqual(['ok', 'ok', 'ok', 'busy', 'busy']);
    expect(codes(await notes(ledger, 3))).toEqual(['ok', 'ok', 'ok']);
  });
});

describe('the writer thread', () => {
  it('does not start for commands that come one after the other', async () => {
    const ledger = await open();
    let started = 0;
    const count = () => {
      started += 1;
    };
    process.on('worker', count);
    for (let n = 0; n < 5; n += 1) await note(ledger, 'alone');
    expect(started).toBe(0);
    const first = once(process, 'worker');
    await notes(ledger, 2);
    await first;
    await notes(ledger, 2);
    expect(started).toBe(1);
    process.off('worker', count);
  });

  it('and the main thread see what the other wrote', async () => {
    const ledger = await open();
    await threadOf(ledger);
    for (let n = 0; n < 10; n += 1) {
      await Promise.all([note(ledger, 'a'), note(ledger, 'b')]);
      await note(ledger, 'c');
      const texts = (await ledger.listNotes(ref())).slice(-3).map(({ text }) => text);
      expect(texts).toEqual(['a', 'b', 'c']);
    }
  });

  it('is gone when the ledger is closed', async () => {
    const ledger = await open();
    const worker = await threadOf(ledger);
    await ledger.close();
    expect(worker.threadId).toBe(-1);
  });

  it('that dies takes its transaction with it and nothing else', async () => {
    const { ledger } = await openOn({ writerHeapMb: 40 });
    const worker = await threadOf(ledger);
    const before = await ledger.snapshot(ref());
    const ended = new Promise((resolve) => worker.on('exit', resolve));
    const results = await notes(ledger, 100, (n) => `${n}`.padEnd(1_000_000, 'x'));
    await ended;
    expect(new Set(codes(results))).toEqual(new Set(['ledger_unavailable']));
    expect(warnings).toEqual(['the writer thread of the ledger ended']);
    expect(await ledger.snapshot(ref())).toEqual(before);
    await threadOf(ledger);
    expect(codes(await notes(ledger, 20))).toEqual(Array.from({ length: 20 }, () => 'ok'));
  });

  it('keeps no process alive that forgot to close', async () => {
    const script = fileURLToPath(new URL('forgetful.ts', import.meta.url));
    await (await open()).close();
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', script, file]);
    expect(stdout).toBe('40 notes, not closed\n');
  });
});

describe('a commit whose answer is lost', () => {
  it.each(['main', 'writer'])('is looked up in the file, on the %s thread', async (thread) => {
    const script = fileURLToPath(new URL('../faults/sqlite-io.ts', import.meta.url));
    await (await open()).close();
    const env = { ...process.env, HOLDFAST_FAULTS: 'L5.committed=throw@20' };
    const run = promisify(execFile)(process.execPath, ['--import', 'tsx', script, file, thread, ''], { env });
    const seen = JSON.parse((await run).stdout);
    expect(seen).toMatchObject({ refused: 0, unknown: 0 });
    expect(seen.warnings).toBeGreaterThan(0);
  });
});

describe('the write-ahead log', () => {
  it('is warned of while a reader keeps it growing, and is cut back afterwards', async () => {
    const ledger = await open();
    const reader = new Database(file);
    reader.exec('BEGIN; SELECT * FROM cases');
    for (let n = 0; n < 3; n += 1) await notes(ledger, 30, () => 'x'.repeat(500_000));
    expect(warnings).toEqual(['a long reader keeps the write-ahead log of the ledger growing']);
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(32 * 1024 * 1024);
    reader.exec('COMMIT');
    reader.close();
    for (let n = 0; n < 3; n += 1) await notes(ledger, 64, () => 'x'.repeat(100_000));
    expect(statSync(`${file}-wal`).size).toBeLessThan(32 * 1024 * 1024);
  });

  it('that cannot be copied back since the file was moved away is warned of, and no more', async () => {
    const ledger = await open();
    await threadOf(ledger);
    const reader = new Database(file);
    reader.exec('BEGIN; SELECT * FROM cases');
    await notes(ledger, 80, () => 'x'.repeat(100_000));
    // The thread is at it.
    renameSync(file, `${file}.gone`);
    await expect.poll(() => warnings).toEqual(['the write-ahead log of the ledger could not be copied back']);
    reader.close();
  });
});
