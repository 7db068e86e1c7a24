import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { present } from '../../src/fence/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import { BILLING, KIND, offered, openCase, TestClock, TRIAGE } from '../storage/suite/fixtures.js';
import { transferOf } from '../storage/suite/parties.js';
import { ACROSS, closeAcross, fencesOf, intendAcross, openAcross, SPEC } from './support.js';

const TOKEN = `${ACROSS.caseId}:3:${TRIAGE}`;
const clock = new TestClock();
let folder: string;
let file: string;
let ledger: LedgerStore;
/** The user's own handle on the file, with none of our code behind it. */
let db: Database.Database;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  file = join(folder, 'ledger.db');
  ledger = await openSqliteLedger({ file, clock });
  await openAcross(ledger);
  db = new Database(file);
  db.exec('CREATE TABLE invoices (id INTEGER PRIMARY KEY, case_id TEXT NOT NULL, amount TEXT)');
});

afterEach(async () => {
  db.close();
  await ledger.close();
  rmSync(folder, { recursive: true });
});

const insert = (token = TOKEN) =>
  db
    .prepare("INSERT INTO invoices (case_id, amount, holdfast_token) VALUES (?, '10.00', ?)")
    .run(token.split(':')[0], token);
const update = () => db.prepare("UPDATE invoices SET amount = '20.00', holdfast_token = ?").run(TOKEN);
const mark = () => db.prepare('UPDATE invoices SET holdfast_token = ?').run(`delete ${TOKEN}`);
const remove = () => db.exec('DELETE FROM invoices');
const count = () => db.prepare('SELECT count(*) FROM invoices').pluck().get();
const refused = (state: string) =>
  expect.objectContaining({
    code: 'SQLITE_CONSTRAINT_TRIGGER',
    message: expect.stringContaining(`holdfast: ${state} `),
  });

describe('a fenced table of SQLite while a case is offered to a receiver with a ledger of its own', () => {
  beforeEach(() => fencesOf(db).apply(SPEC));

  it('[R-061][R-075] takes no write from the intent until the offer closes', async () => {
    insert();
    const offer = await intendAcross(ledger, clock);
    const steps = [null, () => ledger.markOffered(offer.key), () => ledger.markInDoubt(offer.key)];
    for (const step of steps) {
      await step?.();
      expect(() => insert()).toThrow(
        `holdfast: HF009 INSERT on invoices: the case is offered to a receiver with a ledger of its own`,
      );
      expect(update).toThrow(refused('HF009'));
      expect(mark).toThrow(refused('HF009'));
    }
    await closeAcross(ledger, offer);
    insert();
    update();
    expect(count()).toBe(2);
  });

  it('[R-061][R-075] takes no DELETE of a row that was marked before', async () => {
    insert();
    mark();
    const offer = await intendAcross(ledger, clock);
    expect(remove).toThrow(refused('HF009'));
    await closeAcross(ledger, offer);
    remove();
    expect(count()).toBe(0);
  });

  it('[R-061][R-075] takes writes after a release by nobody but the new owner', async () => {
    const offer = await intendAcross(ledger, clock);
    await ledger.markOffered(offer.key);
    await ledger.releaseOffer(transferOf(offer));
    expect(() => insert()).toThrow(refused('HF002'));
    insert(`${ACROSS.caseId}:4:${BILLING}`);
  });

  it('[R-075][R-076] says of a stranger, a stale epoch and a quarantine what it always says', async () => {
    await intendAcross(ledger, clock);
    expect(() => insert(`${ACROSS.caseId}:2:${TRIAGE}`)).toThrow(refused('HF002'));
    expect(() => insert(`${ACROSS.caseId}:3:${BILLING}`)).toThrow(refused('HF003'));
    expect(() => insert(`${ACROSS.caseId}:4:${TRIAGE}`)).toThrow(refused('HF007'));
    await ledger.quarantine({ ref: ACROSS, reason: 'epoch_regressed', witnessed: {}, found: {} });
    expect(() => insert()).toThrow(refused('HF005'));
  });

  it('[R-075] is told by `present` as the ledger tells it of an effect', async () => {
    const presentation = { ref: ACROSS, epoch: 3, writer: TRIAGE };
    expect(present(db, presentation)).toMatchObject({ token: TOKEN });
    const offer = await intendAcross(ledger, clock);
    expect(() => present(db, presentation)).toThrow(expect.objectContaining({ code: 'effects_frozen' }));
    db.defaultSafeIntegers(true);
    expect(() => present(db, presentation)).toThrow(expect.objectContaining({ code: 'effects_frozen' }));
    await closeAcross(ledger, offer);
    expect(present(db, presentation)).toMatchObject({ token: TOKEN });
  });

  it('[R-075] takes the writes of a shared case with an open offer', async () => {
    await ledger.putKind('acme', KIND);
    await openCase(ledger, 'CASE-1');
    await offered(ledger, clock);
    insert(`CASE-1:3:${TRIAGE}`);
    expect(count()).toBe(1);
  });
});

describe('an owner that races its own intent, in SQLite', () => {
  beforeEach(() => fencesOf(db).apply(SPEC));

  it('[R-061][R-075] lets it wait for a write that came first', async () => {
    db.exec('BEGIN IMMEDIATE');
    insert();
    const intending = intendAcross(ledger, clock);
    await new Promise((resolve) => setTimeout(resolve, 20));
    insert();
    db.exec('COMMIT');
    expect(await intending).toMatchObject({ state: 'intended' });
    expect(() => insert()).toThrow(refused('HF009'));
    expect(count()).toBe(2);
  });

  it('[R-061][R-075] refuses a transaction that read before it and writes after it', async () => {
    db.exec('BEGIN');
    expect(db.prepare('SELECT count(*) FROM offers').pluck().get()).toBe(0);
    await intendAcross(ledger, clock);
    expect(() => insert()).toThrow(expect.objectContaining({ code: 'SQLITE_BUSY_SNAPSHOT' }));
    db.exec('ROLLBACK');
    expect(() => insert()).toThrow(refused('HF009'));
  });

  it.each([1, 2, 3, 4])(
    '[R-061][R-075] refuses every write after it, of a process of its own (round %i)',
    async (round) => {
      db.exec('ALTER TABLE invoices ADD COLUMN seen TEXT');
      const script = join(import.meta.dirname, 'late-writer.mjs');
      const writer = spawn(process.execPath, [script, file, TOKEN, 'SELECT count(*) FROM offers'], {
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
      const offer = await intendAcross(ledger, clock);
      await ended;
      expect(offer).toMatchObject({ state: 'intended' });
      const { written, message } = JSON.parse(said.split('\n')[1] ?? '');
      expect(message).toContain('holdfast: HF009 ');
      expect(written).toBeGreaterThan(0);
      const seen = db.prepare('SELECT seen, count(*) AS n FROM invoices GROUP BY seen').all();
      expect(seen).toEqual([{ seen: '0', n: written }]);
    },
  );
});

describe('a fence of SQLite that an earlier version applied', () => {
  it('[R-061][R-075] is not whole, knows nothing of the offer, and is mended by applying it again', async () => {
    db.exec(readFileSync(join(import.meta.dirname, 'before-freeze.sql'), 'utf8'));
    const { ok, problems } = await fencesOf(db).check(SPEC);
    expect(ok).toBe(false);
    expect(problems.map(({ about, state }) => [about, state])).toEqual([
      ['INSERT', 'altered'],
      ['UPDATE', 'altered'],
      ['DELETE', 'altered'],
    ]);
    expect(problems[0]?.problem).toContain('of another version');
    await intendAcross(ledger, clock);
    insert();
    expect(() => insert(`${ACROSS.caseId}:2:${TRIAGE}`)).toThrow(refused('HF002'));
    await fencesOf(db).apply(SPEC);
    expect(await fencesOf(db).check(SPEC)).toMatchObject({ ok: true, problems: [] });
    expect(() => insert()).toThrow(refused('HF009'));
    expect(update).toThrow(refused('HF009'));
    expect(count()).toBe(1);
  });
});
