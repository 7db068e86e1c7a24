import { execFile } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { verifyChain } from '../../src/audit/index.js';
import { sha256Hex } from '../../src/core/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import { APPLICATION_ID, connect } from '../../src/storage/sqlite/connection.js';
import { KNOWN_VERSION, MIGRATIONS } from '../../src/storage/sqlite/migrations/index.js';
import {
  acceptance,
  asBilling,
  asTriage,
  handedOver,
  KIND,
  offered,
  openCase,
  ref,
  TestClock,
  TRIAGE,
} from './suite/fixtures.js';

let folder: string;
let file: string;
const clock = new TestClock();
const ledgers: LedgerStore[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  file = join(folder, 'ledger.db');
});

afterEach(async () => {
  await Promise.all(ledgers.splice(0).map((ledger) => ledger.close()));
  rmSync(folder, { recursive: true });
});

async function open(lockWaitMs = 5000): Promise<LedgerStore> {
  const ledger = await openSqliteLedger({ file, clock, lockWaitMs });
  ledgers.push(ledger);
  return ledger;
}

async function openWithCase(): Promise<LedgerStore> {
  const ledger = await open();
  await ledger.putKind('acme', KIND);
  await openCase(ledger, 'CASE-1');
  return ledger;
}

/** Somebody else's hand on the file, with none of our code. */
function byHand<T>(use: (db: Database.Database) => T): T {
  const db = new Database(file, { timeout: 1000 });
  try {
    db.pragma('foreign_keys = ON');
    return use(db);
  } finally {
    db.close();
  }
}

describe('the file', () => {
  it('is made for its owner alone, in a folder for its owner alone', async () => {
    file = join(folder, 'data', 'ledger.db');
    await open();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 'data')).mode & 0o777).toBe(0o700);
    for (const name of [`${file}-wal`, `${file}-shm`].filter(existsSync)) {
      expect(statSync(name).mode & 0o777).toBe(0o600);
    }
  });

  it('keeps what was committed, and its incarnation, over a restart', async () => {
    const first = await openWithCase();
    await handedOver(first, clock);
    const [snapshot, incarnation] = [await first.snapshot(ref()), await first.incarnation()];
    await first.close();
    const second = await open();
    expect(await second.snapshot(ref())).toEqual(snapshot);
    expect(await second.incarnation()).toBe(incarnation);
  });

  it('from the future is refused and left as it was', async () => {
    await (await open()).close();
    byHand((db) => db.prepare('INSERT INTO migrations VALUES (99, ?, ?)').run('later', 'some day'));
    await expect(open()).rejects.toMatchObject({
      code: 'schema_newer',
      data: { found: 99, known: KNOWN_VERSION },
    });
    expect(byHand((db) => db.prepare('SELECT count(*) FROM migrations').pluck().get())).toBe(
      MIGRATIONS.length + 1,
    );
  });

  it.each([
    ['tables of another application', 'CREATE TABLE customers (id)'],
    ["another application's id", 'PRAGMA application_id = 77'],
  ])('with %s is refused and left as it was', async (_, sql) => {
    byHand((db) => db.exec(sql));
    const before = readFileSync(file);
    await expect(open()).rejects.toMatchObject({ code: 'config_invalid', data: { file } });
    expect(readFileSync(file)).toEqual(before);
  });

  it('that is no database is refused and left as it was', async () => {
    const text = 'dear diary '.repeat(500);
    writeFileSync(file, text);
    await expect(open()).rejects.toMatchObject({ code: 'config_invalid' });
    expect(readFileSync(file, 'utf8')).toBe(text);
  });

  it('with a damaged page is refused', async () => {
    const ledger = await openWithCase();
    for (let n = 0; n < 50; n += 1) await ledger.addNote({ ...asTriage, text: 'x'.repeat(500) });
    await ledger.close();
    const bytes = readFileSync(file);
    bytes.fill(0xff, 4096 * 2, 4096 * 12);
    writeFileSync(file, bytes);
    await expect(open()).rejects.toMatchObject({ code: 'ledger_unavailable' });
  });

  it('names no path and no SQL where it cannot be opened', async () => {
    writeFileSync(join(folder, 'plain'), '');
    file = join(folder, 'plain', 'ledger.db');
    const error = await open().catch((reason: Error) => reason);
    expect(error).toMatchObject({ code: 'ledger_unavailable' });
    expect(String(error)).not.toContain(folder);
  });

  it('has migrations that never change', () => {
    expect(MIGRATIONS.map(({ version, name, sql }) => [version, name, sha256Hex(sql)])).toEqual([
      [1, 'ledger', 'b181bc5cf484d69d703f1e20f34780435997cedc8ab6eacb9de5d11f2a329aa4'],
      [2, 'no-replacing', '930ce7fd843dd297e2256832711f174e42d75a24f1458d26beda5fec4b228157'],
      [3, 'claims', '633048a4d59ab68528d687fcb02077a947aca63b231e5ca154bae1f3ee6099cb'],
      [4, 'separate', '4c0526d7d4091cc4d3a1033fe7ebfdc1534a36779dc4327e3d12117067075112'],
      [5, 'push', '6e56bbbc22fa296d91fecccf5758d7f2eaf74d65f960a2bc37348c18a7c97945'],
      [6, 'recovery', '1fa9623a402cdff1fe32210e4b15d120c4109e20f3b0781d1bd1cfa6a58f6c93'],
      [8, 'incarnation', '4523556411f85f89227cfb254210abc404efe08a7abde8bc41f86b8485eb065c'],
      [9, 'pending', '9f3e30c52bfafb31c11c7a93e76e2da84b8d3fbc91109ef1c2b6a35ba01b6bf7'],
      [10, 'leaps', 'a7e71e9280d2512dc1570aa92b0ec459b49a89ceca365bb5962fb4775999481d'],
      [12, 'candidates', 'bdc11c9ad695c21c33c8878babc766a9732f8ceee69a030d338140c8aa95f6bc'],
    ]);
  });

  it('is brought forward with what is quarantined in it, whatever triggers speak of that', async () => {
    const older = await connect(file, performance.now());
    for (const { sql } of MIGRATIONS.slice(0, 3)) older.exec(sql);
    older.exec(`
      CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT;
      INSERT INTO migrations VALUES (1, 'ledger', ''), (2, 'no-replacing', ''), (3, 'claims', '');
      INSERT INTO meta VALUES ('incarnation', 'inc_1');
      INSERT INTO quarantines VALUES ('acme', 'https://a.example', 'CASE-1', 'audit_forked', '{}', '{}', 'then');
      CREATE TABLE refunds (case_id TEXT);
      CREATE TRIGGER fenced BEFORE INSERT ON refunds WHEN EXISTS (SELECT 1 FROM quarantines WHERE case_id = NEW.case_id)
      BEGIN SELECT RAISE(ABORT, 'quarantined'); END;`);
    older.pragma(`application_id = ${APPLICATION_ID}`);
    older.close();
    const ledger = await open();
    expect(await ledger.listQuarantined('acme')).toMatchObject([{ reason: 'audit_forked', at: 'then' }]);
    await ledger.close();
    const db = await connect(file, performance.now());
    expect(() => db.exec("INSERT INTO refunds VALUES ('CASE-1')")).toThrow('quarantined');
    db.close();
  });

  it('is written ahead and synced at every commit', async () => {
    const db = await connect(file, performance.now());
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
    expect(db.pragma('synchronous', { simple: true })).toBe(2);
    expect(db.pragma('foreign_keys', { simple: true })).toBe(1);
    db.close();
  });
});

describe('two connections on one file', () => {
  it('[R-073][R-079] decide 20 identical offers once', async () => {
    const [one, two] = [await openWithCase(), await open()];
    await offered(one, clock);
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? one : two).accept(acceptance(clock))),
    );
    expect(results.map((result) => result.outcome).sort()).toEqual([
      'accepted',
      ...Array.from({ length: 19 }, () => 'decided'),
    ]);
    expect((await two.snapshot(ref())).work).toHaveLength(1);
  });

  it('[R-075] refuse the old owner on the one once the other has accepted', async () => {
    const [one, two] = [await openWithCase(), await open()];
    await offered(one, clock);
    await two.accept(acceptance(clock));
    await expect(one.addNote({ ...asTriage, text: 'late' })).rejects.toMatchObject({ code: 'epoch_stale' });
    await expect(two.addNote({ ...asBilling, text: 'mine' })).resolves.toBeDefined();
    expect(await one.snapshot(ref())).toEqual(await two.snapshot(ref()));
  });

  it('share one incarnation, also when both make the file', async () => {
    const both = await Promise.all([open(), open()]);
    const [first, second] = await Promise.all(both.map((ledger) => ledger.incarnation()));
    expect(first).toBe(second);
  });

  it('keep one chain without gap or fork while both write', async () => {
    const [one, two] = [await openWithCase(), await open()];
    await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        (n % 2 === 0 ? one : two).addNote({ ...asTriage, text: `note ${n}` }),
      ),
    );
    const audit = await one.readAudit(ref());
    expect(verifyChain(audit)).toEqual({ ok: true, entries: 61 });
  });

  it('are busy once a lock is held past the wait, and go on when it is released', async () => {
    const ledger = await openWithCase();
    await ledger.addNote({ ...asTriage, text: 'before' });
    const impatient = await open(30);
    const holder = new Database(file);
    holder.exec('BEGIN IMMEDIATE');
    await expect(impatient.addNote({ ...asTriage, text: 'x' })).rejects.toMatchObject({ code: 'busy' });
    // Nothing is read outside the turn: what changes nothing waits for it as well.
    await expect(impatient.putKind('acme', KIND)).rejects.toMatchObject({ code: 'busy' });
    const waiting = ledger.addNote({ ...asTriage, text: 'waits' });
    await setTimeout(20);
    holder.exec('COMMIT');
    await expect(waiting).resolves.toBeDefined();
    holder.close();
    await expect(impatient.addNote({ ...asTriage, text: 'now' })).resolves.toBeDefined();
    expect(await ledger.listNotes(ref())).toHaveLength(3);
  });

  it('work in processes of their own', async () => {
    const ledger = await openWithCase();
    const writer = fileURLToPath(new URL('writer.ts', import.meta.url));
    const run = promisify(execFile);
    const others = [1, 2].map(() => run(process.execPath, ['--import', 'tsx', writer, file, '40']));
    for (let n = 0; n < 40; n += 1) {
      await ledger.addNote({ ...asTriage, text: 'from here' });
      await setTimeout(10);
    }
    await Promise.all(others);
    expect(await ledger.listNotes(ref())).toHaveLength(120);
    expect(verifyChain(await ledger.readAudit(ref()))).toEqual({ ok: true, entries: 121 });
  }, 30_000);

  it('open one after the other where both make the file', async () => {
    const holder = new Database(file);
    holder.exec('BEGIN EXCLUSIVE');
    const opening = openSqliteLedger({ file });
    await setTimeout(20);
    holder.exec('COMMIT');
    holder.close();
    await (await opening).close();
  });

  it('read while another writes', async () => {
    const ledger = await openWithCase();
    const holder = new Database(file);
    holder.exec("BEGIN IMMEDIATE; INSERT INTO meta VALUES ('x', 'y')");
    await expect(ledger.getCase(ref())).resolves.toMatchObject({ owner: TRIAGE });
    holder.exec('ROLLBACK');
    holder.close();
  });
});

describe('a transaction that fails', () => {
  /** Each trigger stands for a fault at one step of the acceptance. */
  it.each(['tasks', 'decisions', 'work_items', 'audit'])(
    '[R-073][R-079] at its write to %s leaves nothing behind',
    async (table) => {
      const ledger = await openWithCase();
      await offered(ledger, clock);
      const before = await ledger.snapshot(ref());
      byHand((db) =>
        db.exec(`CREATE TRIGGER fault BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'fault'); END`),
      );
      await expect(ledger.accept(acceptance(clock))).rejects.toMatchObject({ code: 'internal' });
      expect(await ledger.snapshot(ref())).toEqual(before);
      byHand((db) => db.exec('DROP TRIGGER fault'));
      await expect(ledger.accept(acceptance(clock))).resolves.toMatchObject({ outcome: 'accepted' });
    },
  );

  it('tells the caller nothing of the database', async () => {
    const ledger = await openWithCase();
    byHand((db) =>
      db.exec("CREATE TRIGGER fault BEFORE INSERT ON notes BEGIN SELECT RAISE(ROLLBACK, 'secret'); END"),
    );
    const error = await ledger.addNote({ ...asTriage, text: 'x' }).catch((reason: Error) => reason);
    expect(error).toMatchObject({ code: 'internal' });
    expect(String(error)).not.toContain('secret');
    byHand((db) => db.exec('DROP TRIGGER fault'));
    await expect(ledger.addNote({ ...asTriage, text: 'x' })).resolves.toBeDefined();
  });

  it('acknowledges nothing that it would write to a file which is no longer the ledger', async () => {
    const gone: Record<string, () => unknown> = {
      deleted: () => rmSync(file),
      moved: () => renameSync(file, `${file}.old`),
      replaced: () => {
        copyFileSync(file, `${file}.backup`);
        renameSync(`${file}.backup`, file);
      },
      'made anew by another process': async () => {
        rmSync(file);
        await open();
      },
    };
    for (const [how, remove] of Object.entries(gone)) {
      for (const each of ['', '-wal', '-shm']) rmSync(file + each, { force: true });
      const ledger = await openWithCase();
      await remove();
      const unavailable = { code: 'ledger_unavailable' };
      await expect(ledger.accept(acceptance(clock)), how).rejects.toMatchObject(unavailable);
      await expect(ledger.getCase(ref()), how).rejects.toMatchObject(unavailable);
    }
  });

  it('goes on when a file that was moved is back in its place', async () => {
    const ledger = await openWithCase();
    renameSync(file, `${file}.old`);
    await expect(ledger.getCase(ref())).rejects.toMatchObject({ code: 'ledger_unavailable' });
    renameSync(`${file}.old`, file);
    await expect(ledger.addNote({ ...asTriage, text: 'x' })).resolves.toBeDefined();
  });

  it('for a damaged file makes the ledger unavailable, not wrong', async () => {
    const ledger = await openWithCase();
    byHand((db) => {
      db.unsafeMode(true);
      db.pragma('writable_schema = ON');
      db.exec("UPDATE sqlite_schema SET sql = 'CREATE TABLE notes (' WHERE name = 'notes'");
      db.pragma('schema_version = 1000');
    });
    await expect(ledger.addNote({ ...asTriage, text: 'x' })).rejects.toMatchObject({
      code: 'ledger_unavailable',
    });
    await expect(ledger.getCase(ref())).rejects.toMatchObject({ code: 'ledger_unavailable' });
  });
});
