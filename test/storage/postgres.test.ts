import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { verifyChain } from '../../src/audit/index.js';
import { isHoldfastError, newId, sha256Hex } from '../../src/core/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openPostgresLedger, type PostgresLedgerOptions } from '../../src/storage/index.js';
import { KNOWN_VERSION, MIGRATIONS } from '../../src/storage/postgres/migrations/index.js';
import { createTestDatabase } from '../postgres/database.js';
import { createLedgerDatabase, type LedgerDatabase } from '../postgres/ledger.js';
import { type PostgresProxy, startProxy } from '../postgres/proxy.js';
import {
  acceptance,
  asTriage,
  BILLING,
  delivery,
  handedOver,
  KIND,
  offered,
  openCase,
  ref,
  TestClock,
  TRIAGE,
} from './suite/fixtures.js';

let database: LedgerDatabase;
let proxy: PostgresProxy;
const clock = new TestClock();
const ledgers: LedgerStore[] = [];
const hands: pg.Client[] = [];

beforeAll(async () => {
  database = await createLedgerDatabase();
  proxy = await startProxy(database.url);
});

beforeEach(() => database.empty());

afterEach(async () => {
  await Promise.all(hands.splice(0).map((hand) => hand.end()));
  await Promise.all(ledgers.splice(0).map((ledger) => ledger.close()));
});

afterAll(async () => {
  await proxy.close();
  await database.drop();
});

async function open(options: Partial<PostgresLedgerOptions> = {}): Promise<LedgerStore> {
  const ledger = await openPostgresLedger({ url: database.url, clock, ...options });
  ledgers.push(ledger);
  return ledger;
}

async function openWithCase(options: Partial<PostgresLedgerOptions> = {}): Promise<LedgerStore> {
  const ledger = await open(options);
  await ledger.putKind('acme', KIND);
  await openCase(ledger, 'CASE-1');
  return ledger;
}

/** Somebody else's connection, with none of our code. */
async function byHand(...statements: string[]): Promise<pg.Client> {
  const hand = new pg.Client(database.url);
  hands.push(hand);
  await hand.connect();
  for (const sql of statements) await hand.query(sql);
  return hand;
}

const codeOf = (error: unknown) => (isHoldfastError(error) ? error.code : String(error));

describe('an acceptance', () => {
  it('[R-079] is one round trip after the receiver has looked at the case', async () => {
    const ledger = await openWithCase({ url: proxy.url });
    await offered(ledger, clock);
    const command = acceptance(clock);
    await ledger.offerStanding(command.key, command.ref, command.kind);
    const before = proxy.trips;
    expect(await ledger.accept(command)).toMatchObject({ outcome: 'accepted' });
    expect(proxy.trips - before).toBe(1);
  });

  it('is judged again where the guess was wrong', async () => {
    const ledger = await openWithCase();
    const other = await open();
    await offered(ledger, clock);
    await ledger.findDecision(delivery().key);
    await other.startEffect({ ...asTriage, key: 'k', operation: 'notify', amount: null });
    await expect(ledger.accept(acceptance(clock))).rejects.toMatchObject({ code: 'effect_in_flight' });
    await other.settleEffect({ ...asTriage, key: 'k', state: 'failed', outcome: null });
    expect(await ledger.accept(acceptance(clock))).toMatchObject({
      outcome: 'refused',
      code: 'case_changed',
    });
  });

  it('shares its transaction with those that wait at the same moment, and one that fails harms none', async () => {
    const ledger = await openWithCase({ url: proxy.url });
    const ids = Array.from({ length: 64 }, (_, n) => `C-${n}`);
    await Promise.all(ids.map((id) => openCase(ledger, id)));
    const workId = newId('work');
    await handedOver(ledger, clock);
    await ledger.accept(acceptance(clock, { caseId: 'C-0', workId }));
    const before = proxy.trips;
    const results = await Promise.allSettled(
      ids
        .slice(1)
        .map((caseId, n) => ledger.accept(acceptance(clock, { caseId, ...(n === 30 ? { workId } : {}) }))),
    );
    const trips = proxy.trips - before;
    const failed = results.filter((result) => result.status === 'rejected');
    expect(failed.map(({ reason }) => codeOf(reason))).toEqual(['internal']);
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(62);
    expect(await ledger.listCases('acme', { owner: BILLING })).toHaveLength(64);
    expect(trips).toBeLessThan(32);
  });

  it('[R-079] happens once per epoch, whichever of three processes and 64 callers makes it', async () => {
    const first = await openWithCase();
    const stores = [first, await open(), await open()];
    for (let epoch = 3; epoch < 7; epoch += 1) {
      const [sender, toAgent] = epoch % 2 === 1 ? [TRIAGE, BILLING] : [BILLING, TRIAGE];
      const calls = Array.from({ length: 64 }, (_, n) =>
        stores[n % 3]?.accept(acceptance(clock, { sender, toAgent, epoch, attempt: (n % 8) + 1 })),
      );
      const outcomes = await Promise.all(calls);
      expect(outcomes.filter((one) => one?.outcome === 'accepted')).toHaveLength(1);
      expect(await first.getCase(ref())).toMatchObject({ owner: toAgent, epoch: epoch + 1 });
    }
    const { audit, decisions, work } = await first.snapshot(ref());
    expect(verifyChain(audit)).toEqual({ ok: true, entries: audit.length });
    expect(decisions.map((decision) => decision.epochAfter)).toEqual([4, 5, 6, 7]);
    expect(work.filter((item) => item.state === 'open')).toHaveLength(1);
  });

  it('waits for a transaction that holds the case, with a bound, while others go on', async () => {
    const ledger = await openWithCase({ lockMs: 300 });
    await openCase(ledger, 'CASE-2');
    const hand = await byHand('BEGIN', "SELECT 1 FROM holdfast.cases WHERE case_id = 'CASE-1' FOR SHARE");
    const held = ledger.accept(acceptance(clock)).catch(codeOf);
    expect(await ledger.accept(acceptance(clock, { caseId: 'CASE-2' }))).toMatchObject({
      outcome: 'accepted',
    });
    expect(await held).toBe('busy');
    await hand.query('COMMIT');
    expect(await ledger.accept(acceptance(clock))).toMatchObject({ outcome: 'accepted' });
  });

  it('waits with so few connections that a transaction which holds many cases holds up no other', async () => {
    const ledger = await openWithCase();
    const held = Array.from({ length: 12 }, (_, n) => `HELD-${n}`);
    for (const caseId of held) await openCase(ledger, caseId);
    const hand = await byHand('BEGIN', "SELECT 1 FROM holdfast.cases WHERE case_id <> 'CASE-1' FOR SHARE");
    const order: string[] = [];
    const accept = async (caseId: string) => {
      await ledger.accept(acceptance(clock, { caseId })).catch(codeOf);
      order.push(caseId);
    };
    const waiting = held.map(accept);
    for (let n = 0; n < 20; n += 1) await ledger.getCase(ref());
    await accept('CASE-1');
    expect(order).toEqual(['CASE-1']);
    await hand.query('COMMIT');
    await Promise.all(waiting);
    expect(order).toHaveLength(13);
  });

  it("is refused past accept_by by the database's clock, whatever this process thinks", async () => {
    const ledger = await openPostgresLedger({ url: database.url });
    ledgers.push(ledger);
    await ledger.putKind('acme', KIND);
    await openCase(ledger, 'CASE-1');
    const late = { ...acceptance(clock), acceptBy: new Date(Date.now() - 1000).toISOString() };
    expect(await ledger.accept(late)).toMatchObject({ outcome: 'refused', code: 'offer_expired' });
    const open = { ...acceptance(clock), acceptBy: new Date(Date.now() + 60_000).toISOString() };
    expect(await ledger.accept(open)).toMatchObject({ outcome: 'accepted' });
  });
});

describe('a write', () => {
  it.each(['40001', '40P01'])('is tried again after %s, as a whole', async (state) => {
    const ledger = await openWithCase();
    await database.query(`CREATE SEQUENCE public.races_${state}`);
    await database.query(`CREATE FUNCTION public.race_${state}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('public.races_${state}') <= 2 THEN RAISE EXCEPTION 'raced' USING ERRCODE = '${state}'; END IF;
      RETURN NEW; END $$`);
    await database.query(`CREATE TRIGGER race BEFORE INSERT ON holdfast.notes FOR EACH ROW
      EXECUTE FUNCTION public.race_${state}()`);
    try {
      const note = await ledger.addNote({ ...asTriage, text: 'x' });
      expect(await ledger.listNotes(ref())).toEqual([note]);
    } finally {
      await database.query('DROP TRIGGER race ON holdfast.notes');
    }
  });

  it('is busy at once where too many wait already', async () => {
    const ledger = await openWithCase({ connections: 1, waiting: 2 });
    const hand = await byHand('BEGIN', 'LOCK TABLE holdfast.audit_heads');
    const waits = ledger.addNote({ ...asTriage, text: 'x' });
    const reads = Array.from({ length: 20 }, (_, n) =>
      ledger.listCases('acme', { limit: n + 1 }).catch(codeOf),
    );
    expect(await Promise.race(reads)).toBe('busy');
    await hand.query('COMMIT');
    expect((await Promise.all(reads)).filter((read) => read !== 'busy').length).toBeGreaterThan(0);
    await waits;
  });

  it.each([
    ['was carried out before its answer was lost', 'loseAnswerTo'],
    ['was cut off before it arrived', 'loseRequest'],
  ] as const)('that %s succeeds, and is made exactly once', async (_, lose) => {
    const ledger = await openWithCase({ url: proxy.url });
    proxy[lose]('add_note');
    const note = await ledger.addNote({ ...asTriage, text: 'x' });
    expect(await ledger.listNotes(ref())).toEqual([note]);
    expect((await ledger.readAudit(ref())).map(({ type }) => type)).toEqual(['case_imported', 'note_added']);
  });

  it('whose answer is lost is found to be done, and is done once', async () => {
    const ledger = await openWithCase({ url: proxy.url });
    proxy.loseAnswerTo('add_note');
    const note = await ledger.addNote({ ...asTriage, text: 'x' });
    expect(await ledger.listNotes(ref())).toEqual([note]);
    proxy.loseAnswerTo('move_case');
    expect(await ledger.accept(acceptance(clock))).toMatchObject({ outcome: 'accepted' });
    const { audit, work } = await ledger.snapshot(ref());
    expect(audit.map(({ type }) => type)).toEqual(['case_imported', 'note_added', 'handoff_accepted']);
    expect(work).toHaveLength(1);
    const task = {
      id: 't1',
      tenant: 'acme',
      peer: TRIAGE,
      contextId: 'c',
      state: 'TASK_STATE_WORKING',
    } as const;
    proxy.loseAnswerTo('add_task');
    const made = await ledger.createTask({ ...task, statusAt: clock.in(0), task: '{}', handoffId: null });
    proxy.loseAnswerTo('save_task');
    expect(await ledger.saveTask({ ...made, task: '{"a":1}' })).toMatchObject({ version: 2 });
    proxy.loseAnswerTo('add_kind');
    expect(await ledger.putKind('acme', { ...KIND, kind: 'other' })).toBe('created');
  });

  it('is of unknown outcome where it cannot be found out in time, and never done twice', async () => {
    const ledger = await openWithCase({ url: proxy.url, settleMs: 300 });
    proxy.loseAnswerTo('add_note');
    const write = ledger.addNote({ ...asTriage, text: 'x' }).catch(codeOf);
    const gone = new URL(database.url);
    await database.query('SELECT 1');
    // Nobody listens on the port of a closed server.
    const nobody = await startProxy(database.url);
    await nobody.close();
    proxy.lead(Number(new URL(nobody.url).port));
    expect(await write).toBe('outcome_unknown');
    proxy.lead(Number(gone.port));
    const notes = await ledger.listNotes(ref());
    expect(notes.length).toBeLessThanOrEqual(1);
    expect((await ledger.readAudit(ref())).filter(({ type }) => type === 'note_added')).toHaveLength(
      notes.length,
    );
  });

  it('is not made on a read-only database, says nothing of it, and is made once that is healed', async () => {
    await (await openWithCase()).close();
    const name = new URL(database.url).pathname.slice(1);
    await database.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    const ledger = await open();
    const error = await ledger.addNote({ ...asTriage, text: 'x' }).catch((reason: Error) => reason);
    expect(error).toMatchObject({ code: 'ledger_unavailable' });
    expect(String(error)).not.toMatch(/holdfast\.|INSERT|127\.0\.0\.1|read-only/);
    expect(await ledger.getCase(ref())).toMatchObject({ epoch: 3 });
    const admin = await byHand('SET default_transaction_read_only = off');
    await admin.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
    await (await open()).addNote({ ...asTriage, text: 'x' });
  });
});

describe('the schema', () => {
  it('is made once by four that start at the same moment', async () => {
    const empty = await createTestDatabase();
    try {
      const stores = await Promise.all(
        Array.from({ length: 4 }, () => openPostgresLedger({ url: empty.url })),
      );
      const incarnations = await Promise.all(stores.map((store) => store.incarnation()));
      expect(new Set(incarnations).size).toBe(1);
      await Promise.all(stores.map((store) => store.close()));
    } finally {
      await empty.drop();
    }
  });

  it('is not made where it must not, nor used where it is newer', async () => {
    const empty = await createTestDatabase();
    try {
      await expect(openPostgresLedger({ url: empty.url, migrate: false })).rejects.toMatchObject({
        code: 'config_invalid',
      });
      expect(await empty.query("SELECT to_regnamespace('holdfast') AS made")).toEqual([{ made: null }]);
      await (await openPostgresLedger({ url: empty.url })).close();
      await empty.query("INSERT INTO holdfast.migrations VALUES (99, 'later', now())");
      await expect(openPostgresLedger({ url: empty.url })).rejects.toMatchObject({
        code: 'schema_newer',
        data: { found: 99, known: KNOWN_VERSION },
      });
    } finally {
      await empty.drop();
    }
  });

  it('has migrations that never change', () => {
    expect(MIGRATIONS.map(({ version, name, sql }) => [version, name, sha256Hex(sql)])).toEqual([
      [1, 'ledger', '4a13000399eb73f525e7b014f676026ceb12f812da1252ef1d67d2e2f1807ef4'],
      [2, 'commit', '7fa21a9cfaa542371521d9a8be7fb6ce8dc0602da1e96790cd792050c028bf89'],
      [3, 'fences', '4dd865e0a406f59465f444d6bbbbcf635a72ec2120210cbbb4fe309c7216ab6e'],
      [4, 'separate', '86d669f7439a5087d0dc0c92eed42a6a723662e34398ffbbe30c49a1ff0998f9'],
      [5, 'push', '5eab3975672bfae14cffef3d6a82e17cf926262207de546b311dfe42e741f2ee'],
      [6, 'recovery', '1d06ab0cb788f8adc73674af9db4a2f620df10447b1ada6e414e73722d525076'],
      [7, 'frozen', 'cff2184d6c0cf589a68a1b2ac795021c6a59ae71950e97b5537d7ef9f8018424'],
      [8, 'incarnation', '02500be1da36e9df756ffdad4df3d4db895237c931f1917b8af3d8e62aa92cf1'],
      [9, 'pending', '48c6aeffcc12fb0cd5ebf34acd20f18fc0121f642230c7e9073e452e3b85778a'],
      [10, 'leaps', '0dd6722d15adf2088ad3b3c35321eb22275796c525a0b85764d5be8cfa7fb76b'],
      [12, 'candidates', '206dc43c1534ab2cd09f524fa7a21eab1e09ac5e99b157fd8684a3a980c994ef'],
    ]);
  });
});
