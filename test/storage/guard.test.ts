import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Change, Guard, LedgerView, Ruling } from '../../src/ledger/index.js';
import { rules } from '../../src/ledger/index.js';
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
const clock = new TestClock();

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  const db = await connect(join(folder, 'ledger.db'), performance.now());
  migrate(db, clock.in(0));
  engine = sqliteEngine(db, clock, 1000);
  const ledger = createStore(engine);
  await ledger.putKind('acme', KIND);
  await openCase(ledger, 'CASE-1');
});

afterEach(async () => {
  await engine.close();
  rmSync(folder, { recursive: true });
});

const ofTriage: Guard = { ref: ref(), owner: TRIAGE, epoch: 3 };
const ofBilling: Guard = { ref: ref(), owner: BILLING, epoch: 4 };

type Write = readonly [name: Change['do'], guard: Guard, rule: (view: LedgerView) => Ruling<unknown>];

const writes: readonly Write[] = [
  ['close_case', ofTriage, (view) => rules.closeCase(view, asTriage)],
  ['add_note', ofTriage, (view) => rules.addNote(view, { ...asTriage, text: 'x' })],
  ['add_offer', ofTriage, (view) => rules.intendOffer(view, intend(clock))],
  ['start_effect', ofTriage, (view) => rules.startEffect(view, { ...asTriage, ...start('r2') })],
  ['move_case', ofTriage, (view) => rules.accept(view, acceptance(clock))],
  ['add_work', ofBilling, (view) => rules.accept(view, acceptance(clock))],
];

const lapsed: readonly [string, (guard: Guard) => Guard][] = [
  ['owner', (guard) => ({ ...guard, owner: LEGAL })],
  ['older epoch', (guard) => ({ ...guard, epoch: guard.epoch - 1 })],
  ['newer epoch', (guard) => ({ ...guard, epoch: guard.epoch + 1 })],
];

function withGuard(ruling: Ruling<unknown>, name: string, guard: Guard): Ruling<unknown> {
  if ('refusal' in ruling) throw ruling.refusal;
  const changes = ruling.changes.map((change) =>
    change.do === name ? ({ ...change, guard } as Change) : change,
  );
  return { ...ruling, changes };
}

describe.each(writes)('[R-073][R-075][R-076] the statement of %s', (name, guard, rule) => {
  it.each(lapsed)('writes nothing, nor its audit, with another %s', async (_, lapse) => {
    const ledger = createStore(engine);
    const before = await ledger.snapshot(ref());
    await expect(engine.write((view) => withGuard(rule(view), name, lapse(guard)))).rejects.toMatchObject({
      code: 'internal',
    });
    expect(await ledger.snapshot(ref())).toEqual(before);
    await expect(engine.write((view) => withGuard(rule(view), name, guard))).resolves.toBeDefined();
  });
});

describe('[R-075][R-076] the statement that settles', () => {
  it.each(lapsed)('an effect or a work item writes nothing with another %s', async (_, lapse) => {
    const ledger = createStore(engine);
    await ledger.accept(acceptance(clock));
    await ledger.startEffect({ ...asBilling, ...start('r1', '5.00') });
    await ledger.settleEffect({ ...asBilling, key: 'r1', state: 'failed', outcome: null });
    const [item] = await ledger.listWork('acme', {});
    const settleWork = { ...asBilling, workId: item?.id ?? '', state: 'done', result: null } as const;
    const settleEffect = { ...asBilling, key: 'r1', state: 'done', outcome: null } as const;
    const steps: readonly [Change['do'], (view: LedgerView) => Ruling<unknown>][] = [
      ['start_effect', (view) => rules.startEffect(view, { ...asBilling, ...start('r1', '6.00') })],
      ['settle_effect', (view) => rules.settleEffect(view, settleEffect)],
      ['settle_work', (view) => rules.settleWork(view, settleWork)],
    ];
    for (const [name, rule] of steps) {
      const before = await ledger.snapshot(ref());
      const late = engine.write((view) => withGuard(rule(view), name, lapse(ofBilling)));
      await expect(late, name).rejects.toMatchObject({ code: 'internal' });
      expect(await ledger.snapshot(ref()), name).toEqual(before);
      await engine.write(rule);
    }
  });
});
