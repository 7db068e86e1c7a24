import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
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
} from './suite/fixtures.js';
import { SEPARATE } from './suite/parties.js';

let folder: string;
let ledger: LedgerStore;
const clock = new TestClock();

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  ledger = await openSqliteLedger({ file: join(folder, 'ledger.db'), clock });
  await ledger.putKind('acme', KIND);
  await openCase(ledger, 'CASE-1');
});

afterEach(async () => {
  await ledger.close();
  rmSync(folder, { recursive: true });
});

/** Somebody else's hand on the file, with none of our code. */
function byHand<T>(action: (db: Database.Database) => T): T {
  const db = new Database(join(folder, 'ledger.db'), { timeout: 1000 });
  try {
    db.pragma('foreign_keys = ON');
    return action(db);
  } finally {
    db.close();
  }
}

describe('the database itself', () => {
  const refusals: [string, string][] = [
    ['[R-075] an epoch that goes back', 'UPDATE cases SET epoch = epoch - 1'],
    ['[R-075] an epoch that jumps', "UPDATE cases SET epoch = epoch + 2, owner = 'x'"],
    ['an owner without a new epoch', "UPDATE cases SET owner = 'x'"],
    ['a new epoch for the same owner', 'UPDATE cases SET epoch = epoch + 1'],
    ['a case of another kind', "UPDATE cases SET kind = 'order'"],
    ['closing a case with open work', "UPDATE cases SET status = 'closed', closed_at = 'now'"],
    ['losing a case', 'DELETE FROM cases'],
    ['other bytes of an offer', "UPDATE offers SET message = '{}'"],
    ['opening a closed offer', "UPDATE offers SET state = 'offered', closed_at = NULL"],
    ['another receipt', "UPDATE offers SET receipt = 'x'"],
    ['losing an offer', 'DELETE FROM offers'],
    ['[R-083] another verdict', "UPDATE decisions SET answer = '{}'"],
    ['[R-083] losing a decision', 'DELETE FROM decisions'],
    [
      '[R-079] a second decision under one key',
      `INSERT INTO decisions SELECT tenant, root, sender, handoff_id, attempt, case_id, 'rejected', 'x', digest,
        answer, task_id, epoch_before, epoch_before, decided_at FROM decisions`,
    ],
    [
      '[R-079] a second acceptance of one epoch',
      `INSERT INTO decisions SELECT tenant, root, sender, handoff_id, attempt + 1, case_id, verdict, code, digest,
        answer, task_id, epoch_before, epoch_after, decided_at FROM decisions`,
    ],
    [
      '[R-079] a second work item of one acceptance',
      `INSERT INTO work_items SELECT tenant, root, case_id, 'other', sender, handoff_id, attempt, owner, epoch,
        contract, 'done', envelope, result, created_at, created_at FROM work_items`,
    ],
    [
      'a work item without a decision',
      `INSERT INTO work_items SELECT tenant, root, case_id, 'other', sender, handoff_id, 9, owner, epoch,
        contract, 'done', envelope, result, created_at, created_at FROM work_items`,
    ],
    ['losing a work item', 'DELETE FROM work_items'],
    ['another text of a note', "UPDATE notes SET text = 'x'"],
    ['losing a note', 'DELETE FROM notes'],
    ['a second effect under one key', 'INSERT INTO effects SELECT * FROM effects WHERE true'],
    ['a done effect that starts again', "UPDATE effects SET state = 'started', settled_at = NULL"],
    ['losing an effect', 'DELETE FROM effects'],
    ['a terminal task that goes on', "UPDATE tasks SET state = 'TASK_STATE_WORKING'"],
    ['losing a terminal task', 'DELETE FROM tasks'],
    ['another audit entry', "UPDATE audit SET entry = '{}' WHERE seq = 1"],
    ['losing an audit entry', 'DELETE FROM audit WHERE seq = 2'],
    [
      'a gap in the audit',
      "INSERT INTO audit SELECT tenant, root, case_id, max(seq) + 2, '{}', hash, 'h' FROM audit",
    ],
    [
      'a fork of the audit',
      "INSERT INTO audit SELECT tenant, root, case_id, max(seq) + 1, '{}', prev_hash, 'h' FROM audit",
    ],
    ['a state that is none', "UPDATE cases SET status = 'lost'"],
  ];

  it('refuses what would break an invariant, whoever writes it', async () => {
    await ledger.startEffect({ ...asTriage, ...start('r1') });
    await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: 're_1' });
    const { key } = await handedOver(ledger, clock);
    await ledger.recordReceipt({ key, receipt: 'jws', receiptKey: '{}' });
    await ledger.addNote({ ...asBilling, text: 'mine' });
    const before = await ledger.snapshot(ref());
    for (const [what, sql] of refusals) {
      expect(() => byHand((db) => db.exec(sql)), what).toThrow();
    }
    expect(await ledger.snapshot(ref())).toEqual(before);
  });

  it.each(refusals.filter(([what]) => what.startsWith('[')))('refuses %s', async (_, sql) => {
    await handedOver(ledger, clock);
    const before = await ledger.snapshot(ref());
    expect(() => byHand((db) => db.exec(sql))).toThrow(/owner and epoch|final|kept|UNIQUE/);
    expect(await ledger.snapshot(ref())).toEqual(before);
  });

  it.each([
    ['cases', "owner = 'https://thief.example', epoch = 9"],
    ['offers', "message = '{}'"],
    ['decisions', "answer = '{}'"],
    ['work_items', "owner = 'https://thief.example'"],
    ['notes', "text = 'x'"],
    ['effects', "state = 'failed', outcome = NULL"],
    ['tasks', "task = '{}'"],
    ['audit', "entry = '{}'"],
  ])('refuses to put another row in the place of one of %s', async (table, change) => {
    await ledger.startEffect({ ...asTriage, ...start('r1') });
    await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: 're_1' });
    await handedOver(ledger, clock);
    await ledger.addNote({ ...asBilling, text: 'mine' });
    const before = await ledger.snapshot(ref());
    const replaced = (db: Database.Database) => {
      db.exec(`CREATE TEMP TABLE forged AS SELECT * FROM ${table}; UPDATE forged SET ${change}`);
      db.exec(`INSERT OR REPLACE INTO ${table} SELECT * FROM forged`);
    };
    expect(() => byHand(replaced)).toThrow(/kept|chain/);
    expect(await ledger.snapshot(ref())).toEqual(before);
  });

  it.each([
    ["UPDATE OR REPLACE work_items SET owner = 'https://thief.example'", 'identity'],
    [
      "UPDATE OR REPLACE effects SET case_id = 'CASE-2', state = 'done', settled_at = 'now'",
      'keeps its case',
    ],
    ["UPDATE OR REPLACE tasks SET id = 'other'", 'identity'],
  ])('refuses to move a row under another key: %s', async (sql, message) => {
    await handedOver(ledger, clock);
    await ledger.startEffect({ ...asBilling, ...start('r2') });
    expect(() => byHand((db) => db.exec(sql))).toThrow(message);
  });

  it('[R-062] lets an epoch go up alone only to end a quarantine, which stays until it has come up', async () => {
    const raise = (epoch: number) => byHand((db) => db.exec(`UPDATE cases SET epoch = ${epoch}`));
    expect(() => raise(7)).toThrow('owner and epoch');
    const reason = 'epoch_regressed';
    await ledger.quarantine({ ref: ref(), reason, witnessed: { epoch: 7 }, found: { epoch: 3 } });
    const lift = () => byHand((db) => db.exec('DELETE FROM quarantines'));
    expect(lift).toThrow('come up to the one witnessed');
    expect(() => raise(2)).toThrow('owner and epoch');
    const move = "UPDATE cases SET epoch = 8, owner = 'https://thief.example'";
    expect(() => byHand((db) => db.exec(move))).toThrow('owner and epoch');
    raise(6);
    expect(lift).toThrow('come up to the one witnessed');
    raise(7);
    lift();
    expect(() => raise(8)).toThrow('owner and epoch');
  });

  it('refuses a second open offer, and an offer closed without a decision', async () => {
    await offered(ledger, clock);
    const second = `INSERT INTO offers SELECT tenant, root, case_id, sender, handoff_id, 2, kind, to_agent, contract,
      skill, epoch, digest, message, state, code, accept_by, intended_at, intended_seq, closed_at, withheld,
      receipt, receipt_key FROM offers`;
    expect(() => byHand((db) => db.exec(second))).toThrow('one is open');
    const close = "UPDATE offers SET state = 'withdrawn', closed_at = 'now'";
    expect(() => byHand((db) => db.exec(close))).toThrow('only a decision closes an offer');
    await ledger.reject(rejection(clock, 'evidence_empty'));
    expect(await ledger.listOffers('acme', { open: true })).toEqual([]);
    expect((await ledger.getCase(ref()))?.owner).not.toBe(BILLING);
  });

  it.each([
    ["UPDATE transfers SET receipt = 'x'", 'final'],
    ['DELETE FROM transfers', 'kept'],
    ['INSERT OR REPLACE INTO transfers SELECT * FROM transfers', 'kept'],
    [
      `INSERT INTO transfers SELECT tenant, root, case_id, sender, handoff_id, attempt + 1, to_agent, old_epoch,
        new_epoch, digest, receipt, receipt_key FROM transfers`,
      'one for each epoch',
    ],
    [
      `INSERT INTO transfers SELECT tenant, root, case_id, sender, handoff_id, attempt + 1, to_agent, old_epoch,
        new_epoch + 1, digest, receipt, receipt_key FROM transfers`,
      'CHECK',
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
    expect(() => byHand((db) => db.exec(sql))).toThrow(message);
    expect(await ledger.listTransfers(ref('CASE-4'))).toHaveLength(1);
  });
});
