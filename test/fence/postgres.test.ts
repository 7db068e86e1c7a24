import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type FenceSpec, postgresFences, present } from '../../src/fence/index.js';
import { acceptance, BILLING, LEGAL, offered, ref, TRIAGE } from '../storage/suite/fixtures.js';
import { openPostgresWorld, type PostgresWorld, presentSql as presentAs, SPEC } from './support.js';

const { root: ROOT } = ref();

let world: PostgresWorld;
let admin: pg.Client;
/** The user's own client, with none of our code behind it. */
let app: pg.Client;

beforeAll(async () => {
  world = await openPostgresWorld();
  admin = world.admin;
  app = await world.connect();
});

afterAll(() => world.close());

beforeEach(() => world.reset());

afterEach(async () => {
  await app.query('ROLLBACK');
});

/** Billing accepts the case that triage offers. */
async function accept(): Promise<void> {
  await offered(world.ledger, world.clock);
  expect(await world.ledger.accept(acceptance(world.clock))).toMatchObject({ outcome: 'accepted' });
}

const presentSql = (epoch = 3, writer = TRIAGE, caseId = 'CASE-1') => presentAs(epoch, writer, caseId);
/** One transaction of the user's, statement by statement. */
async function inTransaction(...statements: string[]): Promise<void> {
  await app.query('BEGIN');
  for (const statement of statements) await app.query(statement);
  await app.query('COMMIT');
}
const INSERT = "INSERT INTO invoices VALUES (1, 'CASE-1', 10)";
const rows = async () =>
  (await admin.query('SELECT id, case_id, amount::int FROM invoices ORDER BY id')).rows;
const refused = (code: string, over: object = {}) => ({ code, ...over });

describe('a fenced table of PostgreSQL, written with a plain client', () => {
  it('[R-075][R-080] takes the writes of the current owner, by a role that may not read the ledger', async () => {
    await expect(app.query('SELECT * FROM holdfast.cases')).rejects.toMatchObject({ code: '42501' });
    await accept();
    const now = presentSql(4, BILLING);
    await inTransaction(now, INSERT, 'UPDATE invoices SET amount = 20', 'UPDATE invoices SET amount = 30');
    expect(await rows()).toEqual([{ id: 1, case_id: 'CASE-1', amount: 30 }]);
    await inTransaction(now, 'DELETE FROM invoices');
    expect(await rows()).toEqual([]);
  });

  it("[R-075][R-080] refuses the late owner's INSERT, UPDATE and DELETE", async () => {
    await inTransaction(presentSql(), INSERT);
    await accept();
    for (const write of [INSERT, 'UPDATE invoices SET amount = 1', 'DELETE FROM invoices']) {
      const late = inTransaction(presentSql(), write);
      await expect(late).rejects.toMatchObject(
        refused('HF002', { message: expect.stringContaining('presented epoch 3, current epoch 4') }),
      );
      await app.query('ROLLBACK');
      await expect(app.query(write)).rejects.toMatchObject(refused(write === INSERT ? '23505' : 'HF001'));
    }
    await expect(app.query(INSERT.replace('1,', '2,'))).rejects.toMatchObject(
      refused('HF001', {
        schema: 'public',
        table: 'invoices',
        message: expect.stringContaining('INSERT on public.invoices: case CASE-1 was not presented'),
        hint: expect.stringContaining('holdfast.present'),
      }),
    );
    expect(await rows()).toEqual([{ id: 1, case_id: 'CASE-1', amount: 10 }]);
  });

  it.each([
    ['[R-076] the current epoch by another writer', presentSql(3, BILLING), 'HF003'],
    ['an epoch to come', presentSql(4), 'HF007'],
    ['an epoch of the past', presentSql(2), 'HF002'],
    ['no epoch', presentSql().replace('3,', 'NULL,'), 'HF002'],
    ['[R-074] a case that the ledger does not hold', presentSql(3, TRIAGE, 'CASE-0'), 'HF004'],
    ['a case of no name', presentSql().replace("'CASE-1'", 'NULL'), 'HF004'],
  ])('refuses %s', async (_, presentation, state) => {
    await expect(inTransaction(presentation, INSERT)).rejects.toMatchObject({ code: state });
    await app.query('ROLLBACK');
    expect(await rows()).toEqual([]);
  });

  it('refuses quarantined and closed cases', async () => {
    await world.ledger.quarantine({ ref: ref(), reason: 'epoch_regressed', witnessed: {}, found: {} });
    await world.ledger.closeCase({ ref: ref('CASE-2'), writer: TRIAGE, epoch: 3 });
    await expect(app.query(presentSql())).rejects.toMatchObject({ code: 'HF005' });
    await expect(app.query(presentSql(3, TRIAGE, 'CASE-2'))).rejects.toMatchObject({ code: 'HF006' });
  });

  it('refuses TRUNCATE, also after a presentation', async () => {
    await expect(inTransaction(presentSql(), 'TRUNCATE invoices')).rejects.toMatchObject(
      refused('HF008', { table: 'invoices' }),
    );
  });

  it('refuses to move a row into or out of a case that was not presented, and rows without a case', async () => {
    await inTransaction(presentSql(), INSERT);
    const move = "UPDATE invoices SET case_id = 'CASE-2'";
    await expect(inTransaction(presentSql(), move)).rejects.toMatchObject({ code: 'HF001' });
    await app.query('ROLLBACK');
    await expect(inTransaction(presentSql(3, TRIAGE, 'CASE-2'), move)).rejects.toMatchObject({
      message: expect.stringContaining('case CASE-1 was'),
    });
    await app.query('ROLLBACK');
    await expect(inTransaction(presentSql(), 'UPDATE invoices SET case_id = NULL')).rejects.toMatchObject({
      message: expect.stringContaining('a row without a case'),
    });
    await app.query('ROLLBACK');
    await inTransaction(presentSql(), presentSql(3, TRIAGE, 'CASE-2'), move);
    expect(await rows()).toEqual([{ id: 1, case_id: 'CASE-2', amount: 10 }]);
  });

  it('forgets what was presented at the end of the transaction, and with a savepoint', async () => {
    await inTransaction(presentSql());
    await expect(app.query(INSERT)).rejects.toMatchObject({ code: 'HF001' });
    await app.query(`BEGIN; ${presentSql()}; ROLLBACK`);
    await expect(app.query(INSERT)).rejects.toMatchObject({ code: 'HF001' });
    const undone = inTransaction('SAVEPOINT s', presentSql(), 'ROLLBACK TO s', INSERT);
    await expect(undone).rejects.toMatchObject({ code: 'HF001' });
    await app.query('ROLLBACK');
    await inTransaction('SAVEPOINT s', presentSql(), 'RELEASE s', INSERT);
    expect(await rows()).toHaveLength(1);
  });

  it('keeps a presentation over a refusal that is rolled back to a savepoint', async () => {
    await app.query(`BEGIN; ${presentSql()}; SAVEPOINT s`);
    await expect(app.query(presentSql(2, TRIAGE, 'CASE-2'))).rejects.toMatchObject({ code: 'HF002' });
    await app.query(`ROLLBACK TO s; ${INSERT}; COMMIT`);
    expect(await rows()).toHaveLength(1);
  });

  it('leaves nothing for the next user of a pooled connection', async () => {
    const pool = new pg.Pool({ max: 1, connectionString: world.url });
    const first = await pool.connect();
    await first.query(`BEGIN; ${presentSql()}; ${INSERT}; COMMIT`);
    first.release();
    await expect(pool.query(INSERT.replace('1,', '2,'))).rejects.toMatchObject({ code: 'HF001' });
    await pool.end();
  });

  it('takes a setting of that name that it did not make itself for nothing', async () => {
    await app.query(`BEGIN; ${presentSql()}`);
    const name = `holdfast.presented_${(await app.query(`SELECT hashtext('CASE-1') & 63 AS n`)).rows[0].n}`;
    const { rows: found } = await app.query('SELECT current_setting($1) AS was', [name]);
    expect(found[0].was).toContain('CASE-1');
    await app.query('ROLLBACK');
    await app.query('SELECT set_config($1, $2, false)', [name, found[0].was]);
    await expect(app.query(INSERT)).rejects.toMatchObject({ code: 'HF001' });
    await app.query(`RESET ${name}`);
  });

  it('lets one statement present and write', async () => {
    const from = presentSql().replace('SELECT ', '');
    await app.query(`INSERT INTO invoices SELECT 1, 'CASE-1', 10 FROM ${from}`);
    await app.query(`UPDATE invoices SET amount = 20 FROM ${from} WHERE id = 1`);
    await app.query(
      `WITH p AS MATERIALIZED (${presentSql()}) INSERT INTO invoices SELECT 2, 'CASE-1', 5 FROM p`,
    );
    expect(await rows()).toHaveLength(2);
    await app.query(`DELETE FROM invoices USING ${from}`);
    expect(await rows()).toEqual([]);
  });

  it('sees the writes of ON CONFLICT, MERGE, COPY, writable CTEs and many rows', async () => {
    const many = "INSERT INTO invoices SELECT n, 'CASE-1', n FROM generate_series(1, 1000) n";
    await expect(app.query(many)).rejects.toMatchObject({ code: 'HF001' });
    await inTransaction(presentSql(), many);
    const upsert = `INSERT INTO invoices VALUES (1, 'CASE-2', 0) ON CONFLICT (id) DO UPDATE SET amount = 7`;
    const merge = `MERGE INTO invoices i USING (SELECT 1 AS id) s ON i.id = s.id WHEN MATCHED THEN UPDATE SET amount = 8`;
    const cte = 'WITH gone AS (DELETE FROM invoices RETURNING id) SELECT count(*) FROM gone';
    const other = presentSql(3, TRIAGE, 'CASE-2');
    for (const write of [upsert, merge, cte]) {
      await expect(inTransaction(other, write)).rejects.toMatchObject({ code: 'HF001' });
      await app.query('ROLLBACK');
    }
    await inTransaction(presentSql(), upsert, merge);
    await inTransaction(presentSql(), cte);
    expect(await rows()).toEqual([]);
    const copy = `COPY invoices FROM PROGRAM 'printf "1\\tCASE-1\\t5\\n"'`;
    await expect(admin.query(copy)).rejects.toMatchObject({ code: 'HF001' });
    await admin.query(`BEGIN; ${presentSql()}; ${copy}; COMMIT`);
    expect(await rows()).toHaveLength(1);
  });

  it('writes rows of many cases in one transaction', async () => {
    await admin.query(`INSERT INTO holdfast.cases
      SELECT 'acme', '${ROOT}', 'CASE-' || n, 'refund', 'open', '${TRIAGE}', 3, '', '', NULL, NULL, '{}', '[]', 1
      FROM generate_series(3, 1000) n`);
    await app.query('BEGIN');
    await app.query(
      `SELECT count(holdfast.present('acme', '${ROOT}', 'CASE-' || n, 3, '${TRIAGE}')::text) FROM generate_series(1, 1000) n`,
    );
    await app.query("INSERT INTO invoices SELECT n, 'CASE-' || n, n FROM generate_series(1, 1000) n");
    await app.query('UPDATE invoices SET amount = amount + 1; COMMIT');
    expect(await rows()).toHaveLength(1000);
  });

  it('sees what a trigger before it makes of the row', async () => {
    await admin.query(`CREATE FUNCTION sneak() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN NEW.case_id := 'CASE-2'; RETURN NEW; END$$;
      CREATE TRIGGER zzz BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION sneak()`);
    try {
      await expect(inTransaction(presentSql(), INSERT)).rejects.toMatchObject({
        message: expect.stringContaining('case CASE-2 was not presented'),
      });
    } finally {
      await admin.query('DROP FUNCTION sneak CASCADE');
    }
  });

  it('holds in replica mode, and for what a foreign key does', async () => {
    await admin.query(`CREATE TABLE customers (id int PRIMARY KEY);
      CREATE TABLE letters (case_id text, customer int REFERENCES customers ON DELETE CASCADE);
      INSERT INTO customers VALUES (1); INSERT INTO letters VALUES ('CASE-1', 1)`);
    try {
      await postgresFences(admin).apply({ ...SPEC, table: 'letters' });
      await expect(admin.query('DELETE FROM customers')).rejects.toMatchObject({ code: 'HF001' });
      await admin.query(`BEGIN; ${presentSql()}; DELETE FROM customers; COMMIT`);
      await expect(admin.query(`SET session_replication_role = replica; ${INSERT}`)).rejects.toMatchObject({
        code: 'HF001',
      });
    } finally {
      await admin.query('ROLLBACK; SET session_replication_role = origin; DROP TABLE letters, customers');
    }
  });

  it('holds on partitions, also those that come later, and for rows that move between them', async () => {
    await admin.query(`CREATE TABLE parts (tenant text, root text, "case" text, day int) PARTITION BY RANGE (day);
      CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)`);
    const spec = {
      table: 'parts',
      caseColumn: 'case',
      tenant: { column: 'tenant' },
      root: { column: 'root' },
    };
    const fences = postgresFences(admin);
    try {
      await fences.apply(spec);
      await fences.apply(spec);
      expect(await fences.check(spec)).toMatchObject({ ok: true });
      await admin.query('CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20)');
      expect((await fences.check(spec)).problems).toEqual([
        expect.objectContaining({ relation: 'parts_2', about: 'TRUNCATE', state: 'missing' }),
      ]);
      await fences.apply(spec);
      expect(await fences.check(spec)).toMatchObject({ ok: true });
      const put = `INSERT INTO parts_2 VALUES ('acme', '${ROOT}', 'CASE-1', 11)`;
      await expect(admin.query(put)).rejects.toMatchObject({ code: 'HF001', table: 'parts_2' });
      await admin.query(`BEGIN; ${presentSql()}; ${put}; COMMIT`);
      await expect(admin.query('UPDATE parts SET day = 1')).rejects.toMatchObject({ code: 'HF001' });
      await expect(admin.query('TRUNCATE parts_2')).rejects.toMatchObject({ code: 'HF008' });
      await admin.query(`BEGIN; ${presentSql()}; UPDATE parts SET day = 1; COMMIT`);
      await admin.query('ALTER TABLE parts_2 DISABLE TRIGGER holdfast_fence_insert');
      expect((await fences.check(spec)).problems).toEqual([
        expect.objectContaining({ relation: 'parts_2', about: 'INSERT', state: 'disabled' }),
      ]);
    } finally {
      await admin.query('ROLLBACK; DROP TABLE parts');
    }
  });
});

describe('present, in PostgreSQL', () => {
  const presentation = { ref: ref(), epoch: 3, writer: TRIAGE };

  it('[R-075] opens the case for the transaction', async () => {
    await app.query('BEGIN');
    await present(app, presentation);
    await app.query(`${INSERT}; COMMIT`);
    expect(await rows()).toHaveLength(1);
  });

  it('[R-074][R-075][R-076] refuses with the code of the ledger', async () => {
    await expect(present(app, { ...presentation, epoch: 2 })).rejects.toMatchObject({
      code: 'epoch_stale',
      data: { case_id: 'CASE-1', presented: 2, current: 3 },
    });
    await expect(present(app, { ...presentation, epoch: 4 })).rejects.toMatchObject({ code: 'epoch_ahead' });
    await expect(present(app, { ...presentation, writer: LEGAL })).rejects.toMatchObject({
      code: 'not_owner',
    });
    await expect(present(app, { ...presentation, ref: ref('CASE-0') })).rejects.toMatchObject({
      code: 'case_unknown',
    });
    await world.ledger.closeCase({ ref: ref(), writer: TRIAGE, epoch: 3 });
    await expect(present(app, presentation)).rejects.toMatchObject({ code: 'case_closed' });
    await world.ledger.quarantine({ ref: ref(), reason: 'epoch_regressed', witnessed: {}, found: {} });
    await expect(present(app, presentation)).rejects.toMatchObject({ code: 'case_quarantined' });
    await app.query('BEGIN; SELECT 1; SAVEPOINT s');
    await app.query('nonsense').catch(() => {});
    await expect(present(app, presentation)).rejects.toMatchObject({ code: '25P02' });
  });
});

describe('the fence of a table of PostgreSQL', () => {
  const check = (over: Partial<FenceSpec> = {}) =>
    postgresFences(admin).check({ ...SPEC, role: world.role, ...over });

  it('is applied twice like once', async () => {
    const triggers = () =>
      admin.query("SELECT oid, * FROM pg_trigger WHERE tgname LIKE 'holdfast%' ORDER BY oid");
    const before = (await triggers()).rows;
    await postgresFences(admin).apply({ ...SPEC, role: world.role });
    expect((await triggers()).rows).toEqual(before);
    expect(await check()).toEqual({
      table: '"public"."invoices"',
      ok: true,
      problems: [],
      notes: [expect.stringContaining('postgres')],
    });
  });

  it.each([
    [
      'a disabled trigger',
      'ALTER TABLE invoices DISABLE TRIGGER holdfast_fence_update',
      'UPDATE',
      'disabled',
    ],
    [
      'one that replica mode switches off',
      'ALTER TABLE invoices ENABLE TRIGGER holdfast_fence_delete',
      'DELETE',
      'bypassed',
    ],
    ['a dropped trigger', 'DROP TRIGGER holdfast_fence_truncate ON invoices', 'TRUNCATE', 'missing'],
    [
      'a trigger of another condition',
      `CREATE OR REPLACE TRIGGER holdfast_fence_insert AFTER INSERT ON invoices FOR EACH ROW WHEN (false)
        EXECUTE FUNCTION holdfast.refuse_unpresented('=acme', '=${ROOT}', '.case_id')`,
      'INSERT',
      'altered',
    ],
    ['a column of another name', 'ALTER TABLE invoices RENAME amount TO total', null, null],
    ['an heir without a fence', 'CREATE TABLE heirs () INHERITS (invoices)', 'INHERITS', 'bypassed'],
  ])('is looked at: %s', async (_, sql, about, state) => {
    await admin.query('BEGIN');
    try {
      await admin.query(sql);
      // A trigger that was made anew is enabled in the usual way only.
      await admin.query('ALTER TABLE invoices ENABLE ALWAYS TRIGGER holdfast_fence_insert');
      const { ok, problems } = await check();
      expect(ok).toBe(about === null);
      expect(problems).toEqual(about === null ? [] : [expect.objectContaining({ about, state })]);
    } finally {
      await admin.query('ROLLBACK');
    }
  });

  it('is looked at: other columns, the functions, the role', async () => {
    expect((await check({ tenant: { value: 'other' } })).problems[0]).toMatchObject({ state: 'altered' });
    expect((await check({ role: 'postgres' })).problems).toEqual([
      expect.objectContaining({ state: 'bypassed' }),
    ]);
    await admin.query(`BEGIN; REVOKE USAGE ON SCHEMA holdfast FROM ${world.role};
      CREATE OR REPLACE FUNCTION holdfast.present(tenant text, root text, case_id text, epoch bigint, writer text)
      RETURNS void LANGUAGE sql AS 'SELECT'`);
    try {
      expect((await check()).problems.map(({ about, state }) => [about, state])).toEqual(
        expect.arrayContaining([
          ['holdfast.present(text, text, text, bigint, text)', 'altered'],
          [`role ${world.role}`, 'missing'],
        ]),
      );
    } finally {
      await admin.query('ROLLBACK');
    }
  });

  it.each([
    [{ table: 'Invoices' }, 'no table'],
    [{ table: 'public.invoices' }, 'without its schema'],
    [{ schema: 'nope' }, 'no table'],
    [{ table: 'pg_tables', schema: 'pg_catalog', caseColumn: 'x' }, 'is no table'],
    [{ table: 'cases', schema: 'holdfast' }, 'no fence'],
    [{ table: 'x'.repeat(64) }, 'longer than 63 bytes'],
    [{ caseColumn: 'nope' }, 'no column nope'],
    [{ role: 'nobody_here' }, 'no role'],
    [{ root: { value: 'ftp://x' } }, 'http'],
  ])('is refused on %j', async (over, problem) => {
    const wrong = postgresFences(admin).apply({ ...SPEC, ...over });
    await expect(wrong).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining(problem) });
    await admin.query('BEGIN; COMMIT');
  });

  it('quotes names and values, whatever they are', async () => {
    await admin.query(`CREATE SCHEMA "s's"; CREATE TABLE "s's"."it's ""odd"" %s" ("case id" uuid)`);
    const spec = {
      ...SPEC,
      schema: "s's",
      table: `it's "odd" %s`,
      caseColumn: 'case id',
      root: { value: "https://triage.example/it's%20here" },
    };
    await postgresFences(admin).apply(spec);
    expect(await postgresFences(admin).check(spec)).toMatchObject({ ok: true });
    const id = '0b9cd1ae-3f5a-4bb1-9d8f-0123456789ab';
    const put = `INSERT INTO "s's"."it's ""odd"" %s" VALUES ('${id}')`;
    await expect(admin.query(put)).rejects.toMatchObject({ code: 'HF001' });
    await world.ledger.openCase({
      ref: { ...ref(id), root: spec.root.value },
      kind: 'refund',
      owner: TRIAGE,
      epoch: 1,
      actor: TRIAGE,
    });
    await admin.query('BEGIN');
    await present(admin, {
      ref: { ...ref(id), root: "https://triage.example/it's%20here" },
      epoch: 1,
      writer: TRIAGE,
    });
    await admin.query(`${put}; COMMIT; DROP SCHEMA "s's" CASCADE`);
  });
});
