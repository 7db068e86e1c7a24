import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { acceptance, BILLING, offered, TRIAGE } from '../storage/suite/fixtures.js';
import { openPostgresWorld, type PostgresWorld, presentSql, untilWaiting } from './support.js';

let world: PostgresWorld;
let late: pg.Client;
let watcher: pg.Client;

beforeAll(async () => {
  world = await openPostgresWorld();
  // The owner may read the ledger, and so can write into a row which owner it saw.
  late = await world.connect('owner');
  watcher = await world.connect('owner');
  await late.query('ALTER TABLE invoices ADD COLUMN seen text');
});

afterAll(() => world.close());

beforeEach(async () => {
  await world.reset();
  await offered(world.ledger, world.clock);
});

const accept = () => world.ledger.accept(acceptance(world.clock));
const OLD = presentSql(3, TRIAGE);
const insert = (id: number) =>
  `INSERT INTO invoices VALUES (${id}, 'CASE-1', 1, (SELECT owner FROM holdfast.cases WHERE case_id = 'CASE-1'))`;
const seen = async () =>
  (await world.admin.query('SELECT seen, count(*)::int AS n FROM invoices GROUP BY seen')).rows;

describe('a late owner that races the acceptance, in PostgreSQL', () => {
  it('[R-073][R-075] lets it wait for a transaction that has presented', async () => {
    await late.query(`BEGIN; ${OLD}`);
    const accepting = accept();
    await untilWaiting(watcher, 'holdfast.commit');
    await late.query(insert(1));
    await late.query('COMMIT');
    expect(await accepting).toMatchObject({ outcome: 'accepted' });
    await expect(late.query(`BEGIN; ${OLD}`)).rejects.toMatchObject({ code: 'HF002' });
    await late.query('ROLLBACK');
    expect(await seen()).toEqual([{ seen: TRIAGE, n: 1 }]);
  });

  it('[R-073][R-075] refuses a presentation that waited for it', async () => {
    await world.admin.query(
      `BEGIN; UPDATE holdfast.cases SET owner = '${BILLING}', epoch = 4 WHERE case_id = 'CASE-1'`,
    );
    const presenting = late.query(OLD).then(
      () => 'presented',
      ({ code }) => code,
    );
    await untilWaiting(watcher, 'holdfast.present');
    await world.admin.query('COMMIT');
    expect(await presenting).toBe('HF002');
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])(
    '[R-075] refuses every write after it (round %i)',
    async (round) => {
      let written = 0;
      let last = '';
      const writing = (async () => {
        for (let id = 1; id < 5000 && last === ''; id += 1) {
          try {
            await late.query(`BEGIN; ${OLD}`);
            await late.query(insert(id));
            await late.query('COMMIT');
            written += 1;
          } catch (error) {
            last = (error as { code: string }).code;
            await late.query('ROLLBACK');
          }
        }
      })();
      while (written === 0 && last === '') await new Promise((resolve) => setTimeout(resolve, 1));
      await new Promise((resolve) => setTimeout(resolve, round * 4));
      expect(await accept()).toMatchObject({ outcome: 'accepted' });
      await writing;
      expect(last).toBe('HF002');
      expect(written).toBeGreaterThan(0);
      expect(await seen()).toEqual([{ seen: TRIAGE, n: written }]);
    },
  );
});
