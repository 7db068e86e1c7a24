import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Change, Guard, Judge, LedgerStore, Ruling } from '../../src/ledger/index.js';
import { judge } from '../../src/ledger/index.js';
import type { Engine } from '../../src/storage/engine.js';
import { connect } from '../../src/storage/sqlite/connection.js';
import { sqliteEngine } from '../../src/storage/sqlite/engine.js';
import { migrate } from '../../src/storage/sqlite/migrate.js';
import { createStore } from '../../src/storage/store.js';
import {
  acceptance,
  asBilling,
  asTriage,
  BILLING,
  intend,
  KIND,
  LEGAL,
  openCase,
  ref,
  start,
  TestClock,
  TRIAGE,
} from './suite/fixtures.js';

/*
 * The rules check owner and epoch before they rule; the statements check them again. Here a rule rules for the right owner, and
 * the change arrives with a guard that no longer holds, as if something had come in between.
 */

let folder: string;
let engine: Engine;
let ledger: LedgerStore;
/** What comes in between the rule and the statement. */
let between: <T>(ruling: Ruling<T>) => Ruling<T>;
const judgeAndLapse: Judge = (view, name, command) => between(judge(view, name, command));
const clock = new TestClock();

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  const db = await connect(join(folder, 'ledger.db'), performance.now());
  migrate(db, clock.in(0));
  between = (ruling) => ruling;
  engine = sqliteEngine(db, {
    clock,
    lockWaitMs: 1000,
    maxWaiting: 100,
    onWarning: () => undefined,
    judge: judgeAndLapse,
  });
  ledger = createStore(engine);
  await ledger.putKind('acme', KIND);
  await openCase(ledger, 'CASE-1');
});

afterEach(async () => {
  await engine.close();
  rmSync(folder, { recursive: true });
});

const ofTriage: Guard = { ref: ref(), owner: TRIAGE, epoch: 3 };
const ofBilling: Guard = { ref: ref(), owner: BILLING, epoch: 4 };

type Write = readonly [name: Change['do'], guard: Guard, write: () => Promise<unknown>];

const writes: readonly Write[] = [
  ['close_case', ofTriage, () => ledger.closeCase(asTriage)],
  ['add_note', ofTriage, () => ledger.addNote({ ...asTriage, text: 'x' })],
  ['add_offer', ofTriage, () => ledger.intendOffer(intend(clock))],
  ['start_effect', ofTriage, () => ledger.startEffect({ ...asTriage, ...start('r2') })],
  ['move_case', ofTriage, () => ledger.accept(acceptance(clock))],
  ['add_work', ofBilling, () => ledger.accept(acceptance(clock))],
];

const lapsed: readonly [string, (guard: Guard) => Guard][] = [
  ['owner', (guard) => ({ ...guard, owner: LEGAL })],
  ['older epoch', (guard) => ({ ...guard, epoch: guard.epoch - 1 })],
  ['newer epoch', (guard) => ({ ...guard, epoch: guard.epoch + 1 })],
];

async function lapsing(name: Change['do'], guard: Guard, write: () => Promise<unknown>): Promise<unknown> {
  between = (ruling) => {
    if ('refusal' in ruling) return ruling;
    const changes = ruling.changes.map((change) =>
      change.do === name ? ({ ...change, guard } as Change) : change,
    );
    return { ...ruling, changes };
  };
  try {
    return await write();
  } finally {
    between = (ruling) => ruling;
  }
}

describe.each(writes)('[R-073][R-075][R-076] the statement of %s', (name, guard, write) => {
  it.each(lapsed)('writes nothing, nor its audit, with another %s', async (_, lapse) => {
    const before = await ledger.snapshot(ref());
    await expect(lapsing(name, lapse(guard), write)).rejects.toMatchObject({
      code: 'internal',
    });
    expect(await ledger.snapshot(ref())).toEqual(before);
    await expect(lapsing(name, guard, write)).resolves.toBeDefined();
  });
});

describe('[R-075][R-076] the statement that settles', () => {
  it.each(lapsed)('an effect or a work item writes nothing with another %s', async (_, lapse) => {
    await ledger.accept(acceptance(clock));
    await ledger.startEffect({ ...asBilling, ...start('r1', '5.00') });
    await ledger.settleEffect({ ...asBilling, key: 'r1', state: 'failed', outcome: null });
    const [item] = await ledger.listWork('acme', {});
    const settleWork = { ...asBilling, workId: item?.id ?? '', state: 'done', result: null } as const;
    const settleEffect = { ...asBilling, key: 'r1', state: 'done', outcome: null } as const;
    const steps: readonly [Change['do'], () => Promise<unknown>][] = [
      ['start_effect', () => ledger.startEffect({ ...asBilling, ...start('r1', '6.00') })],
      ['settle_effect', () => ledger.settleEffect(settleEffect)],
      ['settle_work', () => ledger.settleWork(settleWork)],
    ];
    for (const [name, write] of steps) {
      const before = await ledger.snapshot(ref());
      const late = lapsing(name, lapse(ofBilling), write);
      await expect(late, name).rejects.toMatchObject({ code: 'internal' });
      expect(await ledger.snapshot(ref()), name).toEqual(before);
      await write();
    }
  });
});
