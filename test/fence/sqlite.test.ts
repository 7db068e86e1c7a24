import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FenceSpec, present } from '../../src/fence/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import {
  BILLING,
  handedOver,
  KIND,
  LEGAL,
  openCase,
  ref,
  TestClock,
  TRIAGE,
} from '../storage/suite/fixtures.js';
import { fencesOf } from './support.js';

const SPEC: FenceSpec = {
  table: 'invoices',
  caseColumn: 'case_id',
  tenant: { value: 'acme' },
  root: { value: ref().root },
};
const INVOICES = `CREATE TABLE invoices (
  id INTEGER PRIMARY KEY, case_id TEXT NOT NULL, number TEXT UNIQUE, amount TEXT NOT NULL, state TEXT)`;

/** What a program has worked out for itself: case, epoch, owner. */
const OLD = `CASE-1:3:${TRIAGE}`;
const NOW = `CASE-1:4:${BILLING}`;

const clock = new TestClock();
let folder: string;
let ledger: LedgerStore;
/** The user's own handle on the file, with none of our code behind it. */
let db: Database.Database;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  const file = join(folder, 'ledger.db');
  ledger = await openSqliteLedger({ file, clock });
  await ledger.putKind('acme', KIND);
  await openCase(ledger, 'CASE-1');
  await openCase(ledger, 'CASE-2');
  db = new Database(file);
  db.exec(INVOICES);
  await fencesOf(db).apply(SPEC);
});

afterEach(async () => {
  db.close();
  await ledger.close();
  rmSync(folder, { recursive: true });
});

const insert = (id: number, token: string | null, caseId = 'CASE-1') =>
  db
    .prepare('INSERT INTO invoices (id, case_id, number, amount, holdfast_token) VALUES (?, ?, ?, ?, ?)')
    .run(id, caseId, `INV-${id}`, '10.00', token);
const update = (id: number, token: string | null) =>
  db.prepare("UPDATE invoices SET amount = '20.00', holdfast_token = ? WHERE id = ?").run(token, id);
const mark = (id: number, token: string | null) =>
  db.prepare('UPDATE invoices SET holdfast_token = ? WHERE id = ?').run(token, id);
const remove = (id: number) => db.prepare('DELETE FROM invoices WHERE id = ?').run(id);
const rows = () => db.prepare('SELECT id, amount, holdfast_token AS token FROM invoices ORDER BY id').all();
const refused = (state: string) =>
  expect.objectContaining({
    code: 'SQLITE_CONSTRAINT_TRIGGER',
    message: expect.stringContaining(`holdfast: ${state} `),
  });

describe('a fenced table of SQLite, written with a plain handle', () => {
  it('[R-075][R-080] takes the writes of the current owner, and keeps no token', async () => {
    await handedOver(ledger, clock);
    insert(1, NOW);
    expect(rows()).toEqual([{ id: 1, amount: '10.00', token: null }]);
    update(1, NOW);
    update(1, NOW);
    expect(rows()).toEqual([{ id: 1, amount: '20.00', token: null }]);
    mark(1, `delete ${NOW}`);
    remove(1);
    expect(rows()).toEqual([]);
  });

  it("[R-075][R-080] refuses the late owner's INSERT, UPDATE and DELETE, and leaves the transaction open", async () => {
    insert(1, OLD);
    await handedOver(ledger, clock);
    db.exec('BEGIN IMMEDIATE');
    expect(() => insert(2, OLD)).toThrow(refused('HF002'));
    expect(() => update(1, OLD)).toThrow(refused('HF002'));
    expect(() => mark(1, `delete ${OLD}`)).toThrow(refused('HF002'));
    expect(() => remove(1)).toThrow(refused('HF001'));
    expect(db.inTransaction).toBe(true);
    insert(3, NOW);
    db.exec('COMMIT');
    expect(rows()).toEqual([
      { id: 1, amount: '10.00', token: null },
      { id: 3, amount: '10.00', token: null },
    ]);
  });

  it('[R-075] refuses an UPDATE that leaves every column of the fence alone', () => {
    insert(1, OLD);
    expect(() => db.exec("UPDATE invoices SET amount = '1.00'")).toThrow(refused('HF001'));
    expect(() => db.exec("UPDATE invoices SET amount = '1.00', holdfast_token = NULL")).toThrow(
      refused('HF001'),
    );
    expect(() => db.exec('DELETE FROM invoices')).toThrow(refused('HF001'));
    expect(rows()).toEqual([{ id: 1, amount: '10.00', token: null }]);
  });

  it.each([
    ['[R-076] the current epoch by another writer', `CASE-1:3:${BILLING}`, 'HF003'],
    ['an epoch to come', `CASE-1:4:${TRIAGE}`, 'HF007'],
    ['an epoch of the past', `CASE-1:2:${TRIAGE}`, 'HF002'],
    ['a token of another case', `CASE-2:3:${TRIAGE}`, 'HF001'],
    ['something else', 'let me in', 'HF001'],
    ['a mark', `delete ${OLD}`, 'HF001'],
  ])('refuses in an INSERT %s', (_, token, state) => {
    expect(() => insert(1, token)).toThrow(refused(state));
    expect(rows()).toEqual([]);
  });

  it('[R-074] refuses unknown, quarantined and closed cases', async () => {
    expect(() => insert(1, `CASE-9:1:${TRIAGE}`, 'CASE-9')).toThrow(refused('HF004'));
    await ledger.quarantine({ ref: ref('CASE-2'), reason: 'epoch_regressed', witnessed: {}, found: {} });
    expect(() => insert(1, `CASE-2:3:${TRIAGE}`, 'CASE-2')).toThrow(refused('HF005'));
    await ledger.closeCase({ ref: ref(), writer: TRIAGE, epoch: 3 });
    expect(() => insert(1, OLD)).toThrow(refused('HF006'));
  });

  it('does not let an UPDATE inherit the mark of another statement', () => {
    insert(1, OLD);
    mark(1, `delete ${OLD}`);
    expect(() => db.exec("UPDATE invoices SET amount = '1.00'")).toThrow(refused('HF001'));
    expect(() => mark(1, null)).toThrow(refused('HF001'));
    update(1, OLD);
    expect(() => remove(1)).toThrow(refused('HF001'));
  });

  it('refuses the DELETE of a row that was marked under an older epoch', async () => {
    insert(1, OLD);
    mark(1, `delete ${OLD}`);
    await handedOver(ledger, clock);
    expect(() => remove(1)).toThrow(refused('HF002'));
  });

  it('keeps each row in its case', () => {
    insert(1, OLD);
    const move = db.prepare("UPDATE invoices SET case_id = 'CASE-2', holdfast_token = ? WHERE id = 1");
    expect(() => move.run(`CASE-2:3:${TRIAGE}`)).toThrow(refused('HF008'));
    expect(() => move.run(OLD)).toThrow(refused('HF001'));
  });

  it.each([false, true])(
    'lets REPLACE remove no row of another case (recursive triggers: %s)',
    (recursive) => {
      db.pragma(`recursive_triggers = ${recursive ? 'ON' : 'OFF'}`);
      insert(1, OLD);
      insert(2, `CASE-2:3:${TRIAGE}`, 'CASE-2');
      const replace = db.prepare(
        'INSERT OR REPLACE INTO invoices (id, case_id, number, amount, holdfast_token) VALUES (?, ?, ?, ?, ?)',
      );
      const other = `CASE-2:3:${TRIAGE}`;
      expect(() => replace.run(1, 'CASE-2', 'INV-9', '0.00', other)).toThrow(refused('HF008'));
      expect(() => replace.run(9, 'CASE-2', 'INV-1', '0.00', other)).toThrow(refused('HF008'));
      const move = db.prepare(
        'UPDATE OR REPLACE invoices SET id = ?, number = ?, holdfast_token = ? WHERE id = 2',
      );
      expect(() => move.run(1, 'INV-2', other)).toThrow(refused('HF008'));
      expect(() => move.run(2, 'INV-1', other)).toThrow(refused('HF008'));
      expect(rows()).toHaveLength(2);
    },
  );

  it('sees through partial unique indexes, and no further', async () => {
    db.exec("CREATE UNIQUE INDEX one_due ON invoices (amount) WHERE state = 'due (now)'");
    expect((await fencesOf(db).check(SPEC)).ok).toBe(false);
    await fencesOf(db).apply(SPEC);
    const put = db.prepare(
      'INSERT OR REPLACE INTO invoices (case_id, amount, state, holdfast_token) VALUES (?, 5, ?, ?)',
    );
    put.run('CASE-1', 'due (now)', OLD);
    put.run('CASE-2', 'paid', `CASE-2:3:${TRIAGE}`);
    expect(() => put.run('CASE-2', 'due (now)', `CASE-2:3:${TRIAGE}`)).toThrow(refused('HF008'));
  });

  it('takes an UPSERT that sets the token on both of its ways', () => {
    const upsert = (set: string) =>
      db.prepare(`INSERT INTO invoices (id, case_id, amount, holdfast_token) VALUES (1, 'CASE-1', '7.00', ?)
        ON CONFLICT (id) DO UPDATE SET amount = excluded.amount${set}`);
    upsert('').run(OLD);
    expect(() => upsert('').run(OLD)).toThrow(refused('HF001'));
    upsert(', holdfast_token = excluded.holdfast_token').run(OLD);
    expect(rows()).toEqual([{ id: 1, amount: '7.00', token: null }]);
  });

  it('refuses what a foreign key would do to rows that were not presented', async () => {
    db.exec(`CREATE TABLE customers (id INTEGER PRIMARY KEY);
      CREATE TABLE letters (id INTEGER PRIMARY KEY, case_id TEXT, customer INTEGER REFERENCES customers ON DELETE CASCADE);
      INSERT INTO customers VALUES (1)`);
    await fencesOf(db).apply({ ...SPEC, table: 'letters' });
    db.prepare('INSERT INTO letters VALUES (1, ?, 1, ?)').run('CASE-1', OLD);
    expect(() => db.exec('DELETE FROM customers')).toThrow(refused('HF001'));
    db.prepare('UPDATE letters SET holdfast_token = ?').run(`delete ${OLD}`);
    db.exec('DELETE FROM customers');
    expect(db.prepare('SELECT count(*) FROM letters').pluck().get()).toBe(0);
  });

  it('writes many rows of many cases in one transaction, each with its token', () => {
    const put = db.prepare(`INSERT INTO invoices (case_id, amount, holdfast_token)
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
      SELECT 'CASE-' || (1 + i % 2), '1.00', 'CASE-' || (1 + i % 2) || ':3:' || ? FROM n`);
    expect(put.run(TRIAGE).changes).toBe(500);
    const all = db.prepare("UPDATE invoices SET amount = '2.00', holdfast_token = ?");
    expect(() => all.run(OLD)).toThrow(refused('HF001'));
    const own = db.prepare(
      "UPDATE invoices SET amount = '2.00', holdfast_token = ? WHERE case_id = 'CASE-1'",
    );
    expect(own.run(OLD).changes).toBe(250);
  });

  it('reads tenant, root and case from columns, in a table without rowid', async () => {
    db.exec(
      'CREATE TABLE parts (tenant TEXT, root TEXT, "case" TEXT, n INTEGER, PRIMARY KEY (tenant, root, "case", n)) WITHOUT ROWID',
    );
    const spec = {
      table: 'parts',
      caseColumn: 'case',
      tenant: { column: 'tenant' },
      root: { column: 'root' },
    };
    await fencesOf(db).apply({ ...spec, tokenColumn: 'fence' });
    const put = db.prepare('INSERT INTO parts VALUES (?, ?, ?, ?, ?)');
    put.run('acme', ref().root, 'CASE-1', 1, OLD);
    expect(() => put.run('other', ref().root, 'CASE-1', 2, OLD)).toThrow(refused('HF004'));
    db.prepare('UPDATE parts SET fence = ?').run(`delete ${OLD}`);
    db.exec('DELETE FROM parts');
    expect((await fencesOf(db).check({ ...spec, tokenColumn: 'fence' })).ok).toBe(true);
  });
});

describe('present, in SQLite', () => {
  it('[R-075] says what to bind', () => {
    expect(present(db, { ref: ref(), epoch: 3, writer: TRIAGE })).toEqual({
      token: OLD,
      deletion: `delete ${OLD}`,
    });
    db.defaultSafeIntegers(true);
    const { token } = present(db, { ref: ref(), epoch: 3, writer: TRIAGE });
    insert(1, token);
  });

  it('[R-074][R-075][R-076] refuses with the code of the ledger', async () => {
    const code = (epoch: number, writer: string, caseId = 'CASE-1') => {
      try {
        return present(db, { ref: ref(caseId), epoch, writer });
      } catch (error) {
        return error;
      }
    };
    expect(code(3, TRIAGE, 'CASE-9')).toMatchObject({ code: 'case_unknown' });
    expect(code(2, TRIAGE)).toMatchObject({ code: 'epoch_stale', data: { presented: 2, current: 3 } });
    expect(code(4, TRIAGE)).toMatchObject({ code: 'epoch_ahead' });
    expect(code(3, LEGAL)).toMatchObject({ code: 'not_owner' });
    await ledger.closeCase({ ref: ref(), writer: TRIAGE, epoch: 3 });
    expect(code(3, TRIAGE)).toMatchObject({ code: 'case_closed' });
    await ledger.quarantine({ ref: ref('CASE-2'), reason: 'epoch_regressed', witnessed: {}, found: {} });
    expect(code(3, TRIAGE, 'CASE-2')).toMatchObject({ code: 'case_quarantined' });
  });
});

describe('the fence of a table of SQLite', () => {
  const check = () => fencesOf(db).check(SPEC);

  it('is applied twice like once, and keeps what was there', async () => {
    insert(1, OLD);
    const before = db.prepare('SELECT name, sql FROM sqlite_schema ORDER BY name').all();
    await fencesOf(db).apply(SPEC);
    expect(db.prepare('SELECT name, sql FROM sqlite_schema ORDER BY name').all()).toEqual(before);
    expect(rows()).toEqual([{ id: 1, amount: '10.00', token: null }]);
    expect(await check()).toMatchObject({ ok: true, problems: [] });
  });

  it('drops tokens that were in the table before it', async () => {
    for (const what of ['insert', 'update', 'delete', 'inserted', 'updated']) {
      db.exec(`DROP TRIGGER holdfast_fence_invoices_${what}`);
    }
    insert(1, OLD);
    await fencesOf(db).apply(SPEC);
    expect(rows()).toEqual([{ id: 1, amount: '10.00', token: null }]);
  });

  it.each([
    ['a dropped trigger', 'DROP TRIGGER holdfast_fence_invoices_delete', 'DELETE', 'missing'],
    [
      'another trigger of its name',
      `DROP TRIGGER holdfast_fence_invoices_update;
       CREATE TRIGGER holdfast_fence_invoices_update BEFORE UPDATE ON invoices BEGIN SELECT 1; END`,
      'UPDATE',
      'altered',
    ],
    ['a unique key that came later', 'CREATE UNIQUE INDEX later ON invoices (amount)', 'INSERT', 'altered'],
    [
      'a column of another name',
      'ALTER TABLE invoices RENAME COLUMN holdfast_token TO tok',
      'holdfast_token',
      'missing',
    ],
  ])('is looked at: %s', async (_, sql, about, state) => {
    db.exec(sql);
    const report = await check();
    expect(report.ok).toBe(false);
    expect(report.problems).toContainEqual(expect.objectContaining({ relation: 'invoices', about, state }));
  });

  it.each([
    [{ table: 'Invoices' }, 'no table'],
    [{ table: 'main.invoices' }, 'without its schema'],
    [{ table: '' }, 'no name'],
    [{ caseColumn: 'nope' }, 'no column nope'],
    [{ caseColumn: 'holdfast_token' }, 'columns of their own'],
    [{ tenant: { value: 'a b' } }, 'tenant'],
    [{ root: { value: 'nope' } }, 'URL'],
    [{ table: 'sqlite_schema' }, 'no table'],
  ])('is refused on %j', async (over, problem) => {
    const wrong = fencesOf(db).apply({ ...SPEC, ...over });
    await expect(wrong).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining(problem) });
    expect(db.inTransaction).toBe(false);
  });

  it("is refused on every table of the ledger's own", async () => {
    const tables = db
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
      .pluck()
      .all() as string[];
    const own = tables.filter((table) => table !== 'invoices');
    expect(own.length).toBeGreaterThan(10);
    for (const table of own) {
      await expect(fencesOf(db).apply({ ...SPEC, table })).rejects.toThrow("ledger's own");
    }
  });

  it('quotes names and values, whatever they are', async () => {
    db.exec(`CREATE TABLE "it's ""odd""" ("case id" TEXT)`);
    const spec = { ...SPEC, table: `it's "odd"`, caseColumn: 'case id', tokenColumn: "t'k" };
    await fencesOf(db).apply(spec);
    const put = db.prepare(`INSERT INTO "it's ""odd""" VALUES (?, ?)`);
    put.run('CASE-1', OLD);
    expect(() => put.run('CASE-1', null)).toThrow(refused('HF001'));
    expect(await fencesOf(db).check(spec)).toMatchObject({ ok: true });
  });
});
