import { appendFileSync, chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../postgres/database.js';
import { type Agent, CASE_FILE, initAgent, run, runWith, serve, temporaryFolder } from './support.js';

let folder: ReturnType<typeof temporaryFolder>;
let agent: Agent;
let database: TestDatabase;
const password = () => new URL(database.url).password;
const file = (name: string) => join(folder.path, name);

beforeEach(async () => {
  folder = temporaryFolder();
  agent = await initAgent(folder.path, 'triage');
  database = await createTestDatabase();
});
afterEach(async () => {
  folder.remove();
  await database.drop();
});

const openCase = (...more: string[]) => run('case', 'open', CASE_FILE, '--dir', agent.dir, ...more);
const caseCount = async (...more: string[]) =>
  (await run('case', 'list', '--dir', agent.dir, '--json', ...more)).json.cases.length;

describe('the ledger that a command opens', () => {
  it('is the one of --db, of HOLDFAST_DB, or of the configuration, in this order', async () => {
    await openCase('--db', file('flag.db'));
    expect(await caseCount('--db', file('flag.db'))).toBe(1);
    expect(existsSync(file('ledger.db'))).toBe(false);

    const env = { HOLDFAST_DB: file('env.db') };
    await runWith({ env }, 'case', 'open', CASE_FILE, '--dir', agent.dir);
    const listed = async (...more: string[]) =>
      (await runWith({ env }, 'case', 'list', '--dir', agent.dir, '--json', ...more)).json.cases.length;
    expect(await listed()).toBe(1);
    expect(await listed('--db', file('other.db'))).toBe(0);
    expect(await caseCount()).toBe(0);
  });

  it('may be in PostgreSQL, by --db and by the configuration', async () => {
    expect((await openCase('--db', database.url)).exit).toBe(0);
    expect(await caseCount('--db', database.url)).toBe(1);
    const config = join(agent.dir, 'holdfast.yaml');
    writeFileSync(
      config,
      readFileSync(config, 'utf8').replace('ledger: ../ledger.db', `ledger: ${database.url}`),
    );
    expect(await caseCount()).toBe(1);
    const { stop } = await serve(agent.dir);
    expect((await stop()).exit).toBe(0);
    expect(existsSync(file('ledger.db'))).toBe(false);
  });

  it('that cannot be opened is a file or a server, and the hint is about that one', async () => {
    const missing = new URL(database.url);
    missing.pathname = '/not_there';
    for (const [target, said] of [
      [missing.href, 'See that the server runs'],
      [file('none.db'), 'See that the ledger exists and can be written'],
    ] as const) {
      const ran = await run('db', 'status', '--db', target);
      expect(ran).toMatchObject({ exit: 10, err: expect.stringContaining(said) });
      expect(ran.err).not.toContain(password());
    }
  });

  it('is named by a check of the configuration, which is for its owner alone', async () => {
    const config = join(agent.dir, 'holdfast.yaml');
    const mode = () => statSync(config).mode & 0o777;
    expect(mode()).toBe(0o600);
    writeFileSync(
      config,
      readFileSync(config, 'utf8').replace('ledger: ../ledger.db', `ledger: ${database.url}`),
    );
    const checked = await run('config', 'check', '--dir', agent.dir);
    expect(checked.out).toContain(new URL(database.url).pathname);
    expect(checked.out).not.toContain(password());

    chmodSync(config, 0o640);
    const key = 'A'.repeat(43);
    const peer = ['--url', 'http://127.0.0.1:4999', '--key', key, '--contract', 'refund-dispute/1'];
    const added = await run('peer', 'add', '--dir', agent.dir, ...peer, '--skill', 'billing');
    expect(added.exit).toBe(0);
    expect(readFileSync(config, 'utf8')).toContain('4999');
    expect(mode()).toBe(0o640);
  });

  it.each(['', 'mysql://db/name', 'postgres://u:s3cret@db'])('is not %j', async (target) => {
    const ran = await run('case', 'list', '--dir', agent.dir, '--db', target);
    expect(ran).toMatchObject({ exit: 2, out: '' });
    expect(ran.err).toMatch(/^holdfast: The ledger must .*\[usage\]\n$/);
    expect(ran.err).not.toContain('s3cret');
  });

  it('is named without its password where it cannot be reached', async () => {
    const target = 'postgres://ann:s3cret@127.0.0.1:1/ledger';
    for (const command of [['case', 'list'], ['db', 'status'], ['serve']]) {
      const ran = await run(...command, '--dir', agent.dir, '--db', target, '--json');
      expect(ran.exit).toBe(10);
      expect(ran.json.error.message).toContain('postgres://ann:***@127.0.0.1:1/ledger');
      expect(ran.out + ran.err).not.toContain('s3cret');
    }
    const refused = await run(
      'db',
      'status',
      '--db',
      database.url.replace(password(), 's3cret'),
      '--dir',
      agent.dir,
    );
    expect(refused.exit).toBe(10);
    expect(refused.err).toMatch(/password authentication failed/);
    expect(refused.err).not.toContain('s3cret');
  });

  it('is refused at start under durability: strict, and named loudly otherwise', async () => {
    const name = new URL(database.url).pathname.slice(1);
    await database.query(`ALTER DATABASE ${name} SET synchronous_commit = off`);
    const doctor = await run('db', 'doctor', '--db', database.url, '--json');
    expect(doctor).toMatchObject({ exit: 12, json: { healthy: false } });

    const { stop } = await serve(agent.dir, '--db', database.url);
    expect((await stop()).exit).toBe(0);

    appendFileSync(join(agent.dir, 'holdfast.yaml'), '\ndurability: strict\n');
    const refused = await run('serve', '--dir', agent.dir, '--db', database.url, '--port', '0');
    expect(refused).toMatchObject({ exit: 12, out: '' });
    expect(refused.err).toMatch(/strict.*synchronous_commit_off.*\[ledger_unsafe\]/);
    await database.query(`ALTER DATABASE ${name} RESET synchronous_commit`);
    expect((await run('case', 'list', '--dir', agent.dir, '--db', database.url)).exit).toBe(0);
  });
});

describe('holdfast db', () => {
  it('migrates, and says from what to what', async () => {
    const made = await run('db', 'migrate', '--db', database.url, '--json');
    expect(made.json).toMatchObject({ from: 0, target: expect.stringContaining(':***@') });
    const again = await run('db', 'migrate', '--db', database.url);
    expect(again.out).toContain(`has schema ${made.json.to}, the newest known`);
    expect(again.out).not.toContain(password());
    expect((await run('db', 'migrate', '--dir', agent.dir, '--json')).json).toMatchObject({ from: 0 });
    expect(existsSync(file('ledger.db'))).toBe(true);
  });

  it('shows the state of the configured ledger, or of one that is named, without any agent', async () => {
    await openCase();
    const status = await run('db', 'status', '--dir', agent.dir, '--json');
    expect(status.json).toMatchObject({ engine: 'sqlite', counts: { cases: 1, open_offers: 0 } });
    const text = await run('db', 'status', '--db', file('ledger.db'), '--dir', folder.path);
    expect(text.out).toMatch(/database +SQLite .*synchronous FULL/);
    expect(text.out).toMatch(/cases +1\n/);
    const none = await run('db', 'status', '--db', file('none.db'), '--dir', folder.path);
    expect(none).toMatchObject({ exit: 10, out: '' });
    expect(existsSync(file('none.db'))).toBe(false);
    const unnamed = await run('db', 'status', '--dir', folder.path);
    expect(unnamed).toMatchObject({ exit: 2, out: '' });
  });

  it('moves a ledger from SQLite to PostgreSQL by backup and restore', async () => {
    await openCase();
    const shown = await run('case', 'show', 'CASE-7001', '--dir', agent.dir, '--json');
    const backup = await run('db', 'backup', file('b.jsonl.gz'), '--dir', agent.dir, '--json');
    expect(backup.json).toMatchObject({
      rows: { cases: 1, kinds: 1 },
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });

    const restored = await run('db', 'restore', file('b.jsonl.gz'), '--db', database.url, '--json');
    expect(restored.json).toMatchObject({ incarnation: backup.json.incarnation, rows: backup.json.rows });
    expect(restored.json.restored_as).not.toBe(backup.json.incarnation);
    expect(restored.json.check_first.length).toBeGreaterThan(2);
    const moved = await run('case', 'show', 'CASE-7001', '--dir', agent.dir, '--db', database.url, '--json');
    expect(moved.json).toEqual(shown.json);
    const verified = await run('audit', 'verify', '--dir', agent.dir, '--db', database.url, '--json');
    expect(verified.json.verified).toBe(true);

    const again = await run('db', 'restore', file('b.jsonl.gz'), '--db', database.url);
    expect(again).toMatchObject({ exit: 2, out: '' });
    expect(again.err).toMatch(/not empty.*\[already_exists\]/);
  });

  it('says of a restore what it was, what it is now and what to look at first', async () => {
    await openCase();
    await run('db', 'backup', file('b.jsonl'), '--dir', agent.dir);
    const restored = await run('db', 'restore', file('b.jsonl'), '--db', file('new.db'));
    expect(restored.exit).toBe(0);
    expect(restored.out).toMatch(/The ledger was inc_\S+ and is now inc_\S+\./);
    expect(restored.out).toMatch(/ {2}- No process uses the ledger/);
  });

  it('refuses bad files with a clear word', async () => {
    await openCase();
    writeFileSync(file('there.jsonl'), 'mine');
    const taken = await run('db', 'backup', file('there.jsonl'), '--dir', agent.dir);
    expect(taken).toMatchObject({ exit: 2, out: '' });
    expect(taken.err).toMatch(/exists already.*\[already_exists\]/);
    expect(readFileSync(file('there.jsonl'), 'utf8')).toBe('mine');
    for (const [name, problem] of [
      ['there.jsonl', /not a backup.*\[backup_invalid\]/],
      ['none.jsonl', /cannot be read.*\[usage\]/],
    ] as const) {
      const bad = await run('db', 'restore', file(name), '--db', file('new.db'));
      expect(bad).toMatchObject({ exit: 2, out: '' });
      expect(bad.err).toMatch(problem);
      expect(existsSync(file('new.db'))).toBe(false);
    }
    expect((await run('db', 'backup', '--dir', agent.dir)).exit).toBe(2);
    expect((await run('db', 'restor', 'x')).exit).toBe(2);
  });

  it('examines a ledger, and its status says what it found', async () => {
    await openCase();
    const sound = await run('db', 'doctor', '--dir', agent.dir, '--json');
    expect(sound.json.audit).toMatchObject({ cases: 1, broken: 0 });

    const db = new Database(file('ledger.db'));
    db.exec('DROP TRIGGER cases_move; UPDATE cases SET epoch = 9');
    db.close();
    const broken = await run('db', 'doctor', '--dir', agent.dir);
    expect(broken.exit).toBe(11);
    expect(broken.out).toMatch(/unsafe +CASE-7001 .*\(audit_broken\)/);
    expect(broken.out).toContain('The ledger is NOT safe.');
  });
});
