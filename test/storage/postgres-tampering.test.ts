import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openPostgresLedger } from '../../src/storage/index.js';
import { createLedgerDatabase, type LedgerDatabase } from '../postgres/ledger.js';
import {
  acceptance,
  asBilling,
  asTriage,
  BILLING,
  handedOver,
  KIND,
  offered,
  openCase,
  ref,
  rejection,
  start,
  TestClock,
  TRIAGE,
} from './suite/fixtures.js';
import { SEPARATE } from './suite/parties.js';

let database: LedgerDatabase;
let hand: pg.Client;
let ledger: LedgerStore;
const clock = new TestClock();

beforeAll(async () => {
  database = await createLedgerDatabase();
  hand = new pg.Client(database.url);
  await hand.connect();
});

beforeEach(async () => {
  await database.empty();
  ledger = await openPostgresLedger({ url: database.url, clock });
  await ledger.putKind('acme', KIND);
  await openCase(ledger, 'CASE-1');
});

afterEach(() => ledger.close());

afterAll(async () => {
  await hand.end();
  await database.drop();
});

/** Somebody else's hand on the database, with none of our code. */
const byHand = (sql: string) => hand.query(sql.replaceAll(/~(\w+)/g, 'holdfast.$1'));

const DECISION = 'tenant, root, sender, handoff_id, attempt, case_id, verdict, code, digest, answer, task_id';
const WORK =
  'tenant, root, case_id, id, sender, handoff_id, attempt, owner, epoch, contract, state, envelope';
const TRANSFER =
  'tenant, root, case_id, sender, handoff_id, to_agent, old_epoch, digest, receipt, receipt_key';
const AUDIT = 'tenant, root, case_id, seq, entry, prev_hash, hash, commit_id';

describe('the database itself', () => {
  const refusals: [string, string, RegExp?][] = [
    ['[R-075] an epoch that goes back', 'UPDATE ~cases SET epoch = epoch - 1', /owner and epoch/],
    ['[R-075] an epoch that jumps', "UPDATE ~cases SET epoch = epoch + 2, owner = 'x'", /owner and epoch/],
    ['an owner without a new epoch', "UPDATE ~cases SET owner = 'x'", /owner and epoch/],
    ['a new epoch for the same owner', 'UPDATE ~cases SET epoch = epoch + 1', /owner and epoch/],
    ['a case of another kind', "UPDATE ~cases SET kind = 'order'", /identity/],
    [
      'closing a case with open work',
      "UPDATE ~cases SET status = 'closed', closed_at = 'now'",
      /something out/,
    ],
    ['losing a case', 'DELETE FROM ~cases', /kept/],
    ['other bytes of an offer', "UPDATE ~offers SET message = '{}'", /never change/],
    ['opening a closed offer', "UPDATE ~offers SET state = 'offered', closed_at = NULL", /final/],
    ['another receipt', "UPDATE ~offers SET receipt = 'x'", /final/],
    ['losing an offer', 'DELETE FROM ~offers', /kept/],
    ['[R-083] another verdict', "UPDATE ~decisions SET answer = '{}'", /final/],
    ['[R-083] losing a decision', 'DELETE FROM ~decisions', /kept/],
    [
      '[R-079] a second decision under one key',
      `INSERT INTO ~decisions (${DECISION}, epoch_before, epoch_after, decided_at)
        SELECT tenant, root, sender, handoff_id, attempt, case_id, 'rejected', 'x', digest, answer, task_id,
          epoch_before, epoch_before, decided_at FROM ~decisions`,
      /decisions_pkey/,
    ],
    [
      '[R-079] a second acceptance of one epoch',
      `INSERT INTO ~decisions (${DECISION}, epoch_before, epoch_after, decided_at)
        SELECT tenant, root, sender, handoff_id, attempt + 1, case_id, verdict, code, digest, answer, task_id,
          epoch_before, epoch_after, decided_at FROM ~decisions`,
      /decisions_one_per_epoch/,
    ],
    [
      '[R-079] a second work item of one acceptance',
      `INSERT INTO ~work_items (${WORK}, result, created_at, settled_at)
        SELECT tenant, root, case_id, 'other', sender, handoff_id, attempt, owner, epoch, contract, 'done', envelope,
          result, created_at, created_at FROM ~work_items`,
      /work_items_one_each/,
    ],
    [
      'a work item without a decision',
      `INSERT INTO ~work_items (${WORK}, result, created_at, settled_at)
        SELECT tenant, root, case_id, 'other', sender, handoff_id, 9, owner, epoch, contract, 'done', envelope,
          result, created_at, created_at FROM ~work_items`,
      /foreign key/,
    ],
    ['another owner of a work item', "UPDATE ~work_items SET owner = 'x'", /identity/],
    ['losing a work item', 'DELETE FROM ~work_items', /kept/],
    ['another text of a note', "UPDATE ~notes SET text = 'x'", /final/],
    ['losing a note', 'DELETE FROM ~notes', /kept/],
    [
      'a done effect that starts again',
      "UPDATE ~effects SET state = 'started', settled_at = NULL",
      /not go that way/,
    ],
    ['an effect of another case', "UPDATE ~effects SET case_id = 'CASE-2'", /not go that way|keeps its case/],
    ['losing an effect', 'DELETE FROM ~effects', /kept/],
    ['a terminal task that goes on', "UPDATE ~tasks SET state = 'TASK_STATE_WORKING'", /final/],
    ['losing a terminal task', 'DELETE FROM ~tasks', /kept/],
    ['another audit entry', "UPDATE ~audit SET entry = '{}' WHERE seq = 1", /append-only/],
    ['losing an audit entry', 'DELETE FROM ~audit WHERE seq = 2', /append-only/],
    [
      'a gap in the audit',
      `INSERT INTO ~audit (${AUDIT}) SELECT tenant, root, case_id, seq + 2, '{}', hash, 'h', commit_id
        FROM ~audit ORDER BY seq DESC LIMIT 1`,
      /gap or fork/,
    ],
    [
      'a fork of the audit',
      `INSERT INTO ~audit (${AUDIT}) SELECT tenant, root, case_id, seq + 1, '{}', prev_hash, 'h', commit_id
        FROM ~audit ORDER BY seq DESC LIMIT 1`,
      /gap or fork/,
    ],
    ['a head that goes back', 'UPDATE ~audit_heads SET seq = seq - 1', /only goes forward/],
    ['another hash of the same head', "UPDATE ~audit_heads SET hash = 'h'", /only goes forward/],
    ['losing a head', 'DELETE FROM ~audit_heads', /kept/],
    ['a state that is none', "UPDATE ~cases SET status = 'lost'", /check constraint/],
    ...[
      'cases',
      'offers',
      'decisions',
      'work_items',
      'notes',
      'effects',
      'tasks',
      'audit',
      'audit_heads',
    ].map((table): [string, string, RegExp] => [
      `emptying ${table}`,
      `TRUNCATE ~${table} CASCADE`,
      /kept|append-only/,
    ]),
  ];

  it('refuses what would break an invariant, whoever writes it', async () => {
    await ledger.startEffect({ ...asTriage, ...start('r1') });
    await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: 're_1' });
    const { key } = await handedOver(ledger, clock);
    await ledger.recordReceipt({ key, receipt: 'jws', receiptKey: '{}' });
    await ledger.addNote({ ...asBilling, text: 'mine' });
    const before = await ledger.snapshot(ref());
    for (const [what, sql, message] of refusals) {
      await expect(byHand(sql), what).rejects.toThrow(message);
    }
    expect(await ledger.snapshot(ref())).toEqual(before);
  });

  it.each(refusals.filter(([what]) => what.startsWith('[')))('refuses %s', async (_, sql, message) => {
    await handedOver(ledger, clock);
    const before = await ledger.snapshot(ref());
    await expect(byHand(sql)).rejects.toThrow(message);
    expect(await ledger.snapshot(ref())).toEqual(before);
  });

  it('[R-062] lets an epoch go up alone only to end a quarantine, which stays until it has come up', async () => {
    const raise = (epoch: number) => byHand(`UPDATE ~cases SET epoch = ${epoch}`);
    await expect(raise(7)).rejects.toThrow('owner and epoch');
    const reason = 'epoch_regressed';
    await ledger.quarantine({ ref: ref(), reason, witnessed: { epoch: 7 }, found: { epoch: 3 } });
    const lift = () => byHand('DELETE FROM ~quarantines');
    await expect(lift()).rejects.toThrow('come up to the one witnessed');
    await expect(raise(2)).rejects.toThrow('owner and epoch');
    const move = "UPDATE ~cases SET epoch = 8, owner = 'https://thief.example'";
    await expect(byHand(move)).rejects.toThrow('owner and epoch');
    await raise(6);
    await expect(lift()).rejects.toThrow('come up to the one witnessed');
    await raise(7);
    await lift();
    await expect(raise(8)).rejects.toThrow('owner and epoch');
  });

  it('refuses a second open offer, and an offer closed without a decision', async () => {
    await offered(ledger, clock);
    const columns = `kind, to_agent, contract, skill, epoch, digest, message, state, code, accept_by, intended_at,
      intended_seq, closed_at, withheld, receipt, receipt_key`;
    const second = `INSERT INTO ~offers (tenant, root, case_id, sender, handoff_id, attempt, ${columns})
      SELECT tenant, root, case_id, sender, handoff_id, 2, ${columns} FROM ~offers`;
    await expect(byHand(second)).rejects.toThrow('offers_one_open');
    const close = "UPDATE ~offers SET state = 'withdrawn', closed_at = 'now'";
    await expect(byHand(close)).rejects.toThrow('only a decision closes an offer');
    await ledger.reject(rejection(clock, 'evidence_empty'));
    expect(await ledger.listOffers('acme', { open: true })).toEqual([]);
    expect((await ledger.getCase(ref()))?.owner).toBe(TRIAGE);
  });

  it('lets go of the claim on an offer or a work item that is closed', async () => {
    await ledger.heartbeat('p1', 60_000);
    const { key } = await offered(ledger, clock);
    await ledger.claimOffers({ tenant: 'acme', agent: TRIAGE, holder: 'p1', limit: 1 });
    const claims = async () => (await byHand('SELECT what FROM ~claims')).rows;
    expect(await claims()).toEqual([{ what: 'offer' }]);
    await ledger.reject({ ...rejection(clock, 'evidence_empty'), key });
    expect(await claims()).toEqual([]);
    const accepted = await ledger.accept(acceptance(clock, { attempt: 2 }));
    const [item] = await ledger.claimWork({ tenant: 'acme', agent: BILLING, holder: 'p1', limit: 1 });
    expect([accepted.outcome, await claims()]).toEqual(['accepted', [{ what: 'work' }]]);
    await ledger.settleWork({ ...asBilling, workId: item?.id ?? '', state: 'done', result: null });
    expect(await claims()).toEqual([]);
  });

  it.each([
    ["UPDATE ~transfers SET receipt = 'x'", /kept/],
    ['DELETE FROM ~transfers', /kept/],
    ['TRUNCATE ~transfers', /kept/],
    [
      `INSERT INTO ~transfers (${TRANSFER}, attempt, new_epoch) SELECT ${TRANSFER}, attempt + 1, new_epoch FROM ~transfers`,
      /transfers_pkey/,
    ],
    [
      `INSERT INTO ~transfers (${TRANSFER}, attempt, new_epoch) SELECT ${TRANSFER}, attempt + 1, new_epoch + 1 FROM ~transfers`,
      /check constraint/,
    ],
  ])('keeps what proves a change of owner between ledgers: %s', async (sql, message) => {
    await ledger.putKind('acme', SEPARATE);
    const separate = {
      provenance: [],
      effects: [],
      incarnation: 'inc_1',
      receipt: 'receipt',
      receiptKey: '{}',
    };
    const { root: sender } = ref();
    await ledger.accept(acceptance(clock, { kind: SEPARATE.kind, caseId: 'CASE-4', sender, separate }));
    await expect(byHand(sql)).rejects.toThrow(message);
    expect(await ledger.listTransfers(ref('CASE-4'))).toHaveLength(1);
  });
});
