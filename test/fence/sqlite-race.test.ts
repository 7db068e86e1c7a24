import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import { acceptance, KIND, offered, openCase, ref, TestClock, TRIAGE } from '../storage/suite/fixtures.js';
import { fencesOf } from './support.js';

const OLD = `CASE-1:3:${TRIAGE}`;
const clock = new TestClock();
let folder: string;
let file: string;
let ledger: LedgerStore;
let db: Database.Database;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  file = join(folder, 'ledger.db');
  ledger = await openSqliteLedger({ file, clock });
  await ledger.putKind('acme', KIND);
  await openCase(ledger, 'CASE-1');
  await offered(ledger, clock);
  db = new Database(file);
  db.exec('CREATE TABLE invoices (id INTEGER PRIMARY KEY, case_id TEXT, amount TEXT, seen TEXT)');
  await fencesOf(db).apply({
    table: 'invoices',
    caseColumn: 'case_id',
    tenant: { value: 'acme' },
    root: { value: ref().root },
  });
});

afterEach(async () => {
  db.close();
  await ledger.close();
  rmSync(folder, { recursive: true });
});

const insert = () =>
  db.prepare("INSERT INTO invoices (case_id, amount, holdfast_token) VALUES ('CASE-1', '1.00', ?)").run(OLD);

describe('a late owner that races the acceptance, in SQLite', () => {
  it('[R-073][R-075] lets it wait for a write that came first', async () => {
    db.exec('BEGIN IMMEDIATE');
    insert();
    const accepting = ledger.accept(acceptance(clock));
    await new Promise((resolve) => setTimeout(resolve, 20));
    insert();
    db.exec('COMMIT');
    expect(await accepting).toMatchObject({ outcome: 'accepted' });
    expect(insert).toThrow('holdfast: HF002 ');
    expect(db.prepare('SELECT count(*) FROM invoices').pluck().get()).toBe(2);
  });

  it('[R-073][R-075] refuses a transaction that read before it and writes after it', async () => {
    db.exec('BEGIN');
    expect(db.prepare('SELECT epoch FROM cases').pluck().get()).toBe(3);
    expect(await ledger.accept(acceptance(clock))).toMatchObject({ outcome: 'accepted' });
    expect(insert).toThrow(expect.objectContaining({ code: 'SQLITE_BUSY_SNAPSHOT' }));
    db.exec('ROLLBACK');
    expect(insert).toThrow('holdfast: HF002 ');
  });

  it.each([1, 2, 3, 4, 5, 6])(
    '[R-075] refuses every write after it, of a process of its own (round %i)',
    async (round) => {
      const writer = spawn(process.execPath, [join(import.meta.dirname, 'late-writer.mjs'), file, OLD], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let said = '';
      const ended = new Promise((resolve) => writer.once('close', resolve));
      await new Promise<void>((resolve) => {
        writer.stdout.setEncoding('utf8').on('data', (text: string) => {
          said += text;
          resolve();
        });
      });
      await new Promise((resolve) => setTimeout(resolve, round * 5));
      const accepted = await ledger.accept(acceptance(clock));
      await ended;
      expect(accepted).toMatchObject({ outcome: 'accepted' });
      const { written, message } = JSON.parse(said.split('\n')[1] ?? '');
      expect(message).toContain('holdfast: HF002 ');
      expect(written).toBeGreaterThan(0);
      const seen = db.prepare('SELECT seen, count(*) AS n FROM invoices GROUP BY seen').all();
      expect(seen).toEqual([{ seen: TRIAGE, n: written }]);
    },
  );
});
