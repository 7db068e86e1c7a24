import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { present } from '../../src/fence/index.js';
import { BILLING, intend, TRIAGE } from '../storage/suite/fixtures.js';
import { transferOf } from '../storage/suite/parties.js';
import {
  ACROSS,
  closeAcross,
  intendAcross,
  openAcross,
  openPostgresWorld,
  type PostgresWorld,
  presentSql as presentAs,
  untilWaiting,
} from './support.js';

let world: PostgresWorld;
/** The user's own client, of a role that may not read the ledger, with none of our code behind it. */
let app: pg.Client;
/** Another, which may read the ledger, and so can write into a row what it saw there. */
let owner: pg.Client;

beforeAll(async () => {
  world = await openPostgresWorld();
  app = await world.connect();
  owner = await world.connect('owner');
  await owner.query('ALTER TABLE invoices ADD COLUMN seen int');
});

afterAll(() => world.close());

beforeEach(async () => {
  await world.reset();
  await openAcross(world.ledger);
});

afterEach(async () => {
  for (const client of [app, owner, world.admin]) await client.query('ROLLBACK');
});

const presentSql = (epoch = 3, writer = TRIAGE) => presentAs(epoch, writer, ACROSS.caseId);
const insert = (id: number) => `INSERT INTO invoices VALUES (${id}, '${ACROSS.caseId}', 10)`;
const write = (id: number) => app.query(`BEGIN; ${presentSql()}; ${insert(id)}; COMMIT`);
const intendIt = (attempt = 1) => intendAcross(world.ledger, world.clock, attempt);
const ids = async () => (await owner.query('SELECT id FROM invoices ORDER BY id')).rows.map(({ id }) => id);
const refused = (code: string) => expect.objectContaining({ code });

describe('a fenced table of PostgreSQL while a case is offered to a receiver with a ledger of its own', () => {
  it('[R-061][R-075] takes no write from the intent until the offer closes', async () => {
    await write(1);
    const offer = await intendIt();
    const { ledger } = world;
    const steps = [null, () => ledger.markOffered(offer.key), () => ledger.markInDoubt(offer.key)];
    for (const step of steps) {
      await step?.();
      for (const statement of [insert(2), 'UPDATE invoices SET amount = 1', 'DELETE FROM invoices']) {
        await expect(app.query(`BEGIN; ${presentSql()}; ${statement}; COMMIT`)).rejects.toMatchObject({
          code: 'HF009',
          message: expect.stringContaining(`case ${ACROSS.caseId} is offered to a receiver with a ledger`),
          hint: expect.stringContaining('once the offer has closed'),
        });
        await app.query('ROLLBACK');
        await expect(app.query(statement)).rejects.toEqual(refused('HF001'));
      }
    }
    await closeAcross(world.ledger, offer);
    await write(2);
    expect(await ids()).toEqual([1, 2]);
  });

  it('[R-061][R-075] takes those of the owner after a release by nobody but the new one', async () => {
    const offer = await intendIt();
    await world.ledger.markOffered(offer.key);
    await world.ledger.releaseOffer(transferOf(offer));
    await expect(app.query(presentSql())).rejects.toEqual(refused('HF002'));
    await app.query(presentSql(4, BILLING));
  });

  it('[R-075][R-076] says of a stranger, a stale epoch and a quarantine what it always says', async () => {
    await intendIt();
    await expect(app.query(presentSql(2))).rejects.toEqual(refused('HF002'));
    await expect(app.query(presentSql(3, BILLING))).rejects.toEqual(refused('HF003'));
    await expect(app.query(presentSql(4))).rejects.toEqual(refused('HF007'));
    await world.ledger.quarantine({ ref: ACROSS, reason: 'epoch_regressed', witnessed: {}, found: {} });
    await expect(app.query(presentSql())).rejects.toEqual(refused('HF005'));
  });

  it('[R-075] is told by `present` as the ledger tells it of an effect', async () => {
    await intendIt();
    const presenting = present(app, { ref: ACROSS, epoch: 3, writer: TRIAGE });
    await expect(presenting).rejects.toMatchObject({
      code: 'effects_frozen',
      data: { case_id: ACROSS.caseId, presented: 3, current: 3 },
    });
  });

  it('[R-075] takes the writes of a shared case, whose offer waits for none of them and leaves its row alone', async () => {
    const version = async () => (await owner.query('SELECT xmin, ctid FROM holdfast.cases')).rows;
    const before = await version();
    await app.query(`BEGIN; ${presentAs(3, TRIAGE, 'CASE-1')}`);
    const offer = await world.ledger.intendOffer(intend(world.clock));
    await world.ledger.markOffered(offer.key);
    await app.query("INSERT INTO invoices VALUES (1, 'CASE-1', 10); COMMIT");
    await app.query(`BEGIN; ${presentAs(3, TRIAGE, 'CASE-1')}; UPDATE invoices SET amount = 1; COMMIT`);
    expect(await version()).toEqual(before);
  });
});

describe('an owner that races its own intent, in PostgreSQL', () => {
  it('[R-061][R-075] lets it wait for a transaction that has presented', async () => {
    await app.query(`BEGIN; ${presentSql()}`);
    const intending = intendIt();
    await untilWaiting(owner, 'holdfast.commit');
    await app.query(`${insert(1)}; COMMIT`);
    expect(await intending).toMatchObject({ state: 'intended' });
    await expect(write(2)).rejects.toEqual(refused('HF009'));
    expect(await ids()).toEqual([1]);
  });

  it('[R-061][R-075] refuses a presentation that waited for it', async () => {
    // Holds the intent up when it has its case, and has not stored its offer.
    await world.admin.query('BEGIN; LOCK TABLE holdfast.offers IN SHARE MODE');
    const intending = intendIt();
    await untilWaiting(owner, 'holdfast.commit');
    const presenting = app.query(presentSql()).then(
      () => 'presented',
      ({ code }) => code,
    );
    await untilWaiting(owner, 'holdfast.present');
    await world.admin.query('COMMIT');
    expect(await intending).toMatchObject({ state: 'intended' });
    expect(await presenting).toBe('HF009');
  });

  it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    '[R-061][R-075] refuses a transaction that took its snapshot before it, under %s',
    async (level) => {
      await app.query(`BEGIN ISOLATION LEVEL ${level}; SELECT count(*) FROM invoices`);
      await intendIt();
      await expect(app.query(presentSql())).rejects.toEqual(refused('40001'));
      await app.query('ROLLBACK');
      await expect(write(1)).rejects.toEqual(refused('HF009'));
    },
  );

  it.each([1, 2, 3, 4, 5, 6])('[R-061][R-075] refuses every write after it (round %i)', async (round) => {
    let written = 0;
    let last = '';
    const open = `(SELECT count(*) FROM holdfast.offers WHERE case_id = '${ACROSS.caseId}')`;
    const writing = (async () => {
      for (let id = 1; id < 5000 && last === ''; id += 1) {
        try {
          await owner.query(`BEGIN; ${presentSql()}`);
          await owner.query(insert(id).replace('10)', `10, ${open})`));
          await owner.query('COMMIT');
          written += 1;
        } catch (error) {
          last = (error as { code: string }).code;
          await owner.query('ROLLBACK');
        }
      }
    })();
    while (written === 0 && last === '') await new Promise((resolve) => setTimeout(resolve, 1));
    await new Promise((resolve) => setTimeout(resolve, round * 4));
    expect(await intendIt()).toMatchObject({ state: 'intended' });
    await writing;
    expect(last).toBe('HF009');
    expect(written).toBeGreaterThan(0);
    const seen = await owner.query('SELECT seen, count(*)::int AS n FROM invoices GROUP BY seen');
    expect(seen.rows).toEqual([{ seen: 0, n: written }]);
  });
});
