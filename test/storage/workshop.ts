import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { CaseSnapshot, NotificationEntry, PushConfig } from '../../src/ledger/index.js';
import { openLedger, openSqliteLedger } from '../../src/storage/index.js';
import { createTestDatabase, type TestDatabase } from '../postgres/database.js';
import {
  acceptance,
  asBilling,
  asTriage,
  handedOver,
  intend,
  KIND,
  openCase,
  ref,
  rejection,
  start,
  TestClock,
} from './suite/fixtures.js';
import { SEPARATE } from './suite/parties.js';

/** A place of one test for files and databases. */
export interface Workshop {
  path(name: string): string;
  /** Databases made by {@link newTarget}. */
  readonly databases: readonly TestDatabase[];
  /** Where a ledger may be made. */
  newTarget(engine: 'sqlite' | 'postgres'): Promise<string>;
  remove(): Promise<void>;
}

export function openWorkshop(): Workshop {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  const databases: TestDatabase[] = [];
  return {
    path: (name) => join(folder, name),
    databases,
    async newTarget(engine) {
      if (engine === 'sqlite') return join(folder, 'other.db');
      const database = await createTestDatabase();
      databases.push(database);
      return database.url;
    },
    async remove() {
      rmSync(folder, { recursive: true });
      for (const database of databases) await database.drop();
    },
  };
}

const REFS = [ref('CASE-1'), ref('CASE-2'), ref('CASE-3', 'zeta'), ref('CASE-4')];

/** A ledger with something in every table, and the odd text. */
export async function fullLedger({ path }: Workshop): Promise<string> {
  const file = path('full.db');
  const clock = new TestClock();
  const ledger = await openSqliteLedger({ file, clock });
  await ledger.putKind('acme', KIND);
  await ledger.putKind('zeta', KIND);
  await openCase(ledger, 'CASE-1');
  await handedOver(ledger, clock);
  await ledger.addNote({ ...asBilling, text: 'line\u2028one "quoted" \u0001\u0000 \u{1F512}' });
  await ledger.startEffect({ ...asBilling, ...start('refund-1') });
  await ledger.settleEffect({ ...asBilling, key: 'refund-1', state: 'done', outcome: null });
  await openCase(ledger, 'CASE-2');
  const candidates = [{ agent: asBilling.writer, attempt: 1, passed: null }];
  const plan = { from: null, candidates, escalateTo: null, acceptWithinMs: 60_000 };
  const { key } = await ledger.intendOffer(intend(clock, { ref: ref('CASE-2'), plan }));
  const question = { n: 1, text: 'Which one? \u0001\u0000' };
  await ledger.noteTask({ key, taskId: 't3', state: 'TASK_STATE_INPUT_REQUIRED', question });
  await ledger.answerQuestion({ key, n: 1, message: '{}', facts: [] });
  await ledger.reject(rejection(clock, 'schema_invalid', { caseId: 'CASE-2' }));
  await ledger.openCase({
    ref: ref('CASE-3', 'zeta'),
    kind: 'refund',
    owner: asTriage.writer,
    epoch: 1,
    actor: 'x',
  });
  await ledger.startEffect({
    ref: ref('CASE-3', 'zeta'),
    writer: asTriage.writer,
    epoch: 1,
    ...start('refund-2'),
  });
  await ledger.quarantine({
    ref: ref('CASE-3', 'zeta'),
    reason: 'epoch_regressed',
    witnessed: { epoch: 5 },
    found: { epoch: 1 },
  });
  await ledger.putKind('acme', SEPARATE);
  const { root: sender } = ref();
  const separate = {
    provenance: [],
    effects: [],
    incarnation: 'inc_1',
    receipt: 'receipt',
    receiptKey: '{}',
  };
  await ledger.accept(acceptance(clock, { kind: SEPARATE.kind, caseId: 'CASE-4', sender, separate }));
  const task = { id: 't1', tenant: 'acme', peer: asTriage.writer, contextId: 'c', handoffId: null };
  const push = { pushId: 'push_1', configId: 'c1', agent: asBilling.writer, token: 'one', scheme: null };
  await ledger.createTask({
    ...task,
    state: 'TASK_STATE_COMPLETED',
    statusAt: clock.in(0),
    task: '{}',
    push: { ...push, url: 'https://hook.example/\u0000', origin: 'https://hook.example', credentials: null },
    event: '{"task":"\u0001"}',
  });
  const { task: decided, ...late } = rejection(clock, 'fact_missing', { caseId: 'CASE-2', attempt: 2 });
  await ledger.deferOffer({
    ...{ key: late.key, ref: late.ref, principal: late.principal, digest: late.digest },
    kind: 'refund',
    toAgent: asBilling.writer,
    contract: 'refund-dispute/1',
    message: '{"text":"\u0001"}',
    acceptBy: clock.in(60_000),
    state: 'waiting',
    task: { ...decided, id: 'task_pending', state: 'TASK_STATE_SUBMITTED' },
  });
  const [agent, peer, holder] = [asBilling.writer, asTriage.writer, `${asBilling.writer}#run_1`];
  await ledger.heartbeat(holder, 30_000);
  const peers = [{ peer, contracts: ['refund-dispute/1'] }];
  await ledger.beginIncarnation({ agent, holder, incarnation: 'inc_b', peers, living: [] });
  const since = clock.in(0);
  await ledger.hearIncarnation({ tenant: 'acme', agent, peer, incarnation: 'inc_t', since, open: [] });
  const watch = { tenant: 'acme', watchId: 'watch_1', agent: asTriage.writer, peer: asBilling.writer };
  await ledger.addWatch({ ...watch, taskId: 't2', tokenHash: 'hash', secret: 'secret', lastsMs: 1e12 });
  await ledger.hear('watch_1', 'push_x-1');
  await ledger.close();
  return file;
}

/** All that the port says of the cases, and of what is on its way to peers. */
export async function contentOf(target: string): Promise<(CaseSnapshot | PushConfig | NotificationEntry)[]> {
  const ledger = await openLedger(target);
  try {
    const pushes = await ledger.listPushes('acme', 't1');
    const notifications = await ledger.listNotifications('acme', {});
    expect(await ledger.isHeard('watch_1', 'push_x-1')).toBe(true);
    return [...(await Promise.all(REFS.map((one) => ledger.snapshot(one)))), ...pushes, ...notifications];
  } finally {
    await ledger.close();
  }
}
