import { describe, expect, it } from 'vitest';
import { postgresFences } from '../../src/fence/index.js';
import { openPostgresLedger } from '../../src/storage/index.js';
import { MIGRATIONS } from '../../src/storage/postgres/migrations/index.js';
import { ACROSS, intendAcross, openAcross, openPostgresWorld, presentSql, SPEC } from '../fence/support.js';
import { createTestDatabase } from '../postgres/database.js';
import { TRIAGE } from './suite/fixtures.js';

describe('a fence of PostgreSQL that an earlier version applied', () => {
  it('[R-061][R-075] is not whole until the ledger is brought forward, and then needs nothing more', async () => {
    const world = await openPostgresWorld();
    const database = await createTestDatabase();
    const admin = await world.connect('owner', database.url);
    const present = presentSql(3, TRIAGE, ACROSS.caseId);
    try {
      const frozen = MIGRATIONS.findIndex(({ name }) => name === 'frozen');
      await admin.query(`CREATE SCHEMA holdfast;
        CREATE TABLE holdfast.migrations (version INT PRIMARY KEY, name TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL)`);
      for (const { version, name, sql } of MIGRATIONS.slice(0, frozen)) {
        await admin.query(sql);
        await admin.query('INSERT INTO holdfast.migrations VALUES ($1, $2, now())', [version, name]);
      }
      await admin.query(`INSERT INTO holdfast.meta VALUES ('incarnation', 'inc_1');
        CREATE TABLE invoices (id int PRIMARY KEY, case_id text, amount numeric NOT NULL);
        GRANT ALL ON invoices TO ${world.role}`);
      const spec = { ...SPEC, role: world.role };
      await postgresFences(admin).apply(spec);
      expect((await postgresFences(admin).check(spec)).problems).toEqual([
        {
          relation: 'holdfast',
          about: 'holdfast.present(text, text, text, bigint, text)',
          state: 'altered',
          problem: 'is not the function of this version',
        },
      ]);
      const ledger = await openPostgresLedger({ url: database.url, clock: world.clock });
      expect(await postgresFences(admin).check(spec)).toMatchObject({ ok: true, problems: [] });
      await openAcross(ledger);
      const late = await world.connect('role', database.url);
      await late.query(`BEGIN; ${present}; INSERT INTO invoices VALUES (1, '${ACROSS.caseId}', 10); COMMIT`);
      await intendAcross(ledger, world.clock);
      await expect(late.query(present)).rejects.toMatchObject({ code: 'HF009' });
      await ledger.close();
      await late.end();
      await admin.query(`DROP OWNED BY ${world.role}`);
    } finally {
      await admin.end();
      await database.drop();
      await world.close();
    }
  });
});
