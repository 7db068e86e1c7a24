import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { postgresFences, present } from '../../src/fence/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import { KIND, openCase, ref, TestClock, TRIAGE } from '../storage/suite/fixtures.js';
import { fencesOf, openPostgresWorld, SPEC } from './support.js';

const ANN = `person:ann@${TRIAGE}`;
const late = { ref: ref(), epoch: 3, writer: TRIAGE };
const hers = { ref: ref(), epoch: 4, writer: ANN };

const take = (ledger: LedgerStore) =>
  ledger.changeOwner({
    ...{ ref: ref(), change: 'takeover', epoch: 3, actor: ANN, to: ANN },
    ...{ reason: 'nobody answers', voids: null },
  });

it('[R-075][R-137] the fence of an SQLite table follows a person who takes the case', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  const file = join(folder, 'ledger.db');
  const ledger = await openSqliteLedger({ file, clock: new TestClock() });
  const db = new Database(file);
  try {
    await ledger.putKind('acme', KIND);
    await openCase(ledger, 'CASE-1');
    db.exec('CREATE TABLE invoices (id INTEGER PRIMARY KEY, case_id TEXT NOT NULL)');
    await fencesOf(db).apply(SPEC);
    const insert = (id: number, token: string) =>
      db
        .prepare('INSERT INTO invoices (id, case_id, holdfast_token) VALUES (?, ?, ?)')
        .run(id, 'CASE-1', token);
    const { token: before } = present(db, late);
    insert(1, before);
    await take(ledger);
    expect(() => present(db, late)).toThrow(expect.objectContaining({ code: 'epoch_stale' }));
    expect(() => present(db, { ...hers, writer: TRIAGE })).toThrow(
      expect.objectContaining({ code: 'not_owner' }),
    );
    expect(() => insert(2, before)).toThrow('HF002');
    expect(() => insert(2, `CASE-1:4:${TRIAGE}`)).toThrow('HF003');
    insert(2, present(db, hers).token);
    expect(db.prepare('SELECT id FROM invoices').pluck().all()).toEqual([1, 2]);
  } finally {
    db.close();
    await ledger.close();
    rmSync(folder, { recursive: true });
  }
});

it('[R-075][R-137] the fence of a PostgreSQL table follows a person who takes the case', async () => {
  const world = await openPostgresWorld();
  try {
    await world.reset();
    await postgresFences(world.admin).apply({ ...SPEC, role: world.role });
    const app = await world.connect();
    await take(world.ledger);
    const write = async (presentation: Parameters<typeof present>[1], id: number) => {
      await app.query('BEGIN');
      try {
        await present(app, presentation);
        await app.query(`INSERT INTO invoices (id, case_id) VALUES (${id}, 'CASE-1')`);
        await app.query('COMMIT');
      } catch (error) {
        await app.query('ROLLBACK');
        throw error;
      }
    };
    await expect(write(late, 1)).rejects.toMatchObject({ code: 'epoch_stale' });
    await expect(write({ ...hers, writer: TRIAGE }, 1)).rejects.toMatchObject({ code: 'not_owner' });
    await write(hers, 2);
    expect((await world.admin.query('SELECT id FROM invoices')).rows).toEqual([{ id: 2 }]);
  } finally {
    await world.close();
  }
});
