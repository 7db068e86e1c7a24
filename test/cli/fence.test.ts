import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../postgres/database.js';
import { run, temporaryFolder } from './support.js';

const folder = temporaryFolder();
const file = join(folder.path, 'ledger.db');
const TABLE = ['--table', 'invoices', '--case-column', 'case_id'];
const CASE = ['--tenant', 'acme', '--root', 'https://triage.example'];
const LITE = [...TABLE, ...CASE, '--dialect', 'sqlite', '--db', file];
let db: Database.Database;
let database: TestDatabase;

beforeAll(async () => {
  await run('db', 'migrate', '--db', file);
  db = new Database(file);
  db.exec('CREATE TABLE invoices (id INTEGER PRIMARY KEY, case_id TEXT)');
  database = await createTestDatabase();
  await database.query('CREATE TABLE invoices (id int, case_id text)');
});

afterAll(async () => {
  db.close();
  folder.remove();
  await database.drop();
});

describe('holdfast fence', () => {
  it('says what is missing, puts it there, and says that it is', async () => {
    const missing = await run('fence', 'check', ...LITE, '--json');
    expect(missing).toMatchObject({ exit: 12, json: { ok: false, table: 'invoices', target: file } });
    expect(missing.json.problems).toHaveLength(6);
    expect(await run('fence', 'apply', ...LITE)).toMatchObject({
      exit: 0,
      out: `invoices in ${file} has its fence.\n`,
    });
    expect(await run('fence', 'apply', ...LITE, '--json')).toMatchObject({
      exit: 0,
      json: { applied: true },
    });
    expect(await run('fence', 'check', ...LITE)).toMatchObject({
      exit: 0,
      out: expect.stringContaining('is in force'),
    });
    db.exec('DROP TRIGGER holdfast_fence_invoices_delete');
    expect(await run('fence', 'check', ...LITE)).toMatchObject({
      exit: 12,
      out: expect.stringContaining(
        'invoices: DELETE: has no trigger holdfast_fence_invoices_delete (missing)',
      ),
    });
  });

  it('prints SQL that does what apply does', async () => {
    const { json } = await run('fence', 'sql', ...LITE, '--json');
    db.exec(json.sql);
    db.exec(json.sql);
    expect(await run('fence', 'check', ...LITE)).toMatchObject({ exit: 0 });
  });

  it('does the same on PostgreSQL, and shows no password', async () => {
    const target = ['--dialect', 'postgres', ...TABLE, ...CASE, '--db', database.url];
    const early = await run('fence', 'apply', ...target);
    expect(early).toMatchObject({ exit: 2, err: expect.stringContaining('holdfast db migrate') });
    await run('db', 'migrate', '--db', database.url);
    const { out } = await run('fence', 'sql', '--dialect', 'postgres', ...TABLE, ...CASE);
    await database.query(out);
    await database.query(out);
    const checked = await run('fence', 'check', ...target);
    expect(checked).toMatchObject({ exit: 0, out: expect.stringContaining('is in force') });
    expect(checked.out).not.toContain(new URL(database.url).password);
    expect(await run('fence', 'apply', ...target)).toMatchObject({ exit: 0 });
    await database.query('ALTER TABLE invoices DISABLE TRIGGER holdfast_fence_update');
    const { exit, json } = await run('fence', 'check', ...target, '--json');
    expect(exit).toBe(12);
    expect(json.problems).toEqual([expect.objectContaining({ about: 'UPDATE', state: 'disabled' })]);
  });

  it.each([
    [['--dialect', 'oracle', ...TABLE, ...CASE], '--dialect is postgres or sqlite'],
    [['--dialect', 'sqlite', ...TABLE, '--tenant', 'acme'], 'either --root or --root-column'],
    [
      ['--dialect', 'sqlite', ...TABLE, ...CASE, '--tenant-column', 't'],
      'either --tenant or --tenant-column',
    ],
    [['--dialect', 'sqlite', ...TABLE, ...CASE, '--role', 'r'], '--role is not for --dialect sqlite'],
    [['--dialect', 'postgres', ...TABLE, ...CASE, '--token-column', 't'], '--token-column is not for'],
    [['--dialect', 'postgres', ...TABLE, ...CASE, '--db', file], 'not of the dialect postgres'],
    [
      ['--dialect', 'sqlite', '--table', 'nope', '--case-column', 'c', ...CASE, '--db', file],
      'no table nope',
    ],
    [
      ['--dialect', 'sqlite', '--table', 'cases', '--case-column', 'case_id', ...CASE, '--db', file],
      'own tables',
    ],
    [['--dialect', 'sqlite', ...TABLE, '--tenant', 'acme', '--root', 'nope', '--db', file], 'Not a URL'],
    [['--dialect', 'sqlite', ...TABLE], '--tenant'],
  ])('refuses %j', async (words, problem) => {
    const ran = await run('fence', 'apply', '--db', file, ...words);
    expect(ran).toMatchObject({ exit: 2, err: expect.stringContaining(problem) });
    expect(ran.err).toContain('[usage]');
  });

  it('refuses a ledger that is not there', async () => {
    const gone = [...TABLE, ...CASE, '--dialect', 'sqlite', '--db', join(folder.path, 'gone.db')];
    expect(await run('fence', 'check', ...gone)).toMatchObject({ exit: 10 });
  });
});
