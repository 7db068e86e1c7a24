import { describe, expect, it } from 'vitest';
import type { LedgerStore, NewPush, PushClaim, TaskRow } from '../../../src/ledger/index.js';
import { BILLING, ledgerWithCase, type OpenLedger, type TestClock, TRIAGE } from './fixtures.js';

const LEASE_MS = 10 * 86_400_000;
const HOUR_MS = 3_600_000;

const task = (id = 't1'): Omit<TaskRow, 'version'> => ({
  id,
  tenant: 'acme',
  peer: TRIAGE,
  contextId: 'ctx-1',
  state: 'TASK_STATE_WORKING',
  statusAt: '2026-03-01T10:00:00.000Z',
  task: '{}',
  handoffId: null,
});

const hook = (name = 'a', over: Partial<NewPush> = {}): NewPush => ({
  pushId: `push_${name}`,
  configId: name,
  agent: BILLING,
  url: `https://${name}.example/hook?key=\u0001\u0000`,
  origin: `https://${name}.example`,
  token: 'token',
  scheme: 'Bearer',
  credentials: 'secret',
  ...over,
});

const claim = (over: Partial<PushClaim> = {}): PushClaim => ({
  tenant: 'acme',
  agent: BILLING,
  holder: 'p1',
  limit: 10,
  without: [],
  working: [],
  ...over,
});

async function claimed(ledger: LedgerStore, over: Partial<PushClaim> = {}): Promise<string[]> {
  const due = await ledger.claimPushes(claim(over));
  return due.map(({ push, notification }) => `${push.configId}: ${notification.body}`);
}

const settle = (
  ledger: LedgerStore,
  seq: number,
  outcome: Parameters<LedgerStore['settleNotification']>[0]['outcome'],
  over: { pushId?: string; holder?: string } = {},
) => ledger.settleNotification({ tenant: 'acme', pushId: 'push_a', seq, holder: 'p1', outcome, ...over });

const failed = (againMs = HOUR_MS) =>
  ({ what: 'failed', reason: 'http_503', againMs, giveUpMs: 7 * 24 * HOUR_MS }) as const;

export function pushSuite(open: OpenLedger): void {
  describe('push notifications', () => {
    async function withTask(): Promise<{ ledger: LedgerStore; clock: TestClock; row: TaskRow }> {
      const { ledger, clock } = await ledgerWithCase(open);
      for (const holder of ['p1', 'p2']) await ledger.heartbeat(holder, LEASE_MS);
      return { ledger, clock, row: await ledger.createTask({ ...task(), push: hook(), event: 'created' }) };
    }

    const list = async (ledger: LedgerStore) =>
      (await ledger.listNotifications('acme', {})).map(({ configId, seq, state, tries, reason }) =>
        [configId, seq, state, tries, reason].join(' '),
      );

    it('[R-147] are written with the change of the task that they tell of, for each configuration, or not at all', async () => {
      const { ledger, row } = await withTask();
      await ledger.addPush({ tenant: 'acme', peer: TRIAGE, taskId: 't1', push: hook('b') });
      const second = await ledger.saveTask({ ...row, event: 'second' });
      await ledger.saveTask(second);
      await expect(ledger.saveTask({ ...second, event: 'never' })).rejects.toMatchObject({
        code: 'task_conflict',
      });
      await ledger.createTask({ ...task('t2'), event: 'nobody asked' });
      expect((await list(ledger)).sort()).toEqual(['a 1 waiting 0 ', 'a 2 waiting 0 ', 'b 2 waiting 0 ']);
      expect(await ledger.countNotifications('acme')).toEqual({ waiting: 3, dead: 0 });
      expect(await ledger.getNotification('acme', 'push_a', 2)).toMatchObject({ body: 'second', tries: 0 });
      expect(await ledger.getNotification('other', 'push_a', 2)).toBeNull();
    });

    it('[R-147] are delivered oldest first, by one process at a time', async () => {
      const { ledger, row } = await withTask();
      const second = await ledger.saveTask({ ...row, event: 'second' });
      expect(await claimed(ledger, { tenant: 'other' })).toEqual([]);
      expect(await claimed(ledger, { agent: TRIAGE })).toEqual([]);
      expect(await claimed(ledger, { holder: 'p3' })).toEqual([]);
      expect(await claimed(ledger)).toEqual(['a: created']);
      expect(await claimed(ledger, { working: ['push_a'] })).toEqual([]);
      expect(await claimed(ledger, { holder: 'p2' })).toEqual([]);
      expect(await settle(ledger, 1, { what: 'delivered' }, { holder: 'p2' })).toEqual({
        became: 'lost',
        next: null,
      });
      await ledger.saveTask({ ...second, event: 'third' });
      const first = await settle(ledger, 1, { what: 'delivered' });
      expect(first).toMatchObject({
        became: 'delivered',
        next: { notification: { seq: 2, body: 'second' } },
      });
      expect(await settle(ledger, 2, { what: 'delivered' })).toMatchObject({
        next: { notification: { seq: 3 } },
      });
      expect(await settle(ledger, 3, { what: 'delivered' })).toEqual({ became: 'delivered', next: null });
      expect(await claimed(ledger)).toEqual([]);
      expect(await list(ledger)).toEqual([]);
    });

    it('are due again when another event comes after all were delivered', async () => {
      const { ledger, row } = await withTask();
      await claimed(ledger);
      await settle(ledger, 1, { what: 'delivered' });
      await ledger.saveTask({ ...row, event: 'second' });
      expect(await claimed(ledger, { holder: 'p2' })).toEqual(['a: second']);
    });

    it('never miss that one is added while the last one is settled', async () => {
      const { ledger, row } = await withTask();
      let [before, seq] = [row, 1];
      for (let round = 0; round < 10; round += 1) {
        await claimed(ledger);
        const [saved, settled] = await Promise.all([
          ledger.saveTask({ ...before, event: `event ${round}` }),
          settle(ledger, seq, { what: 'delivered' }),
        ]);
        expect(settled.became).toBe('delivered');
        [before, seq] = [saved, saved.version];
        if (settled.next === null) expect(await claimed(ledger)).toEqual([`a: event ${round}`]);
        else expect(settled.next.notification.seq).toBe(seq);
      }
    });

    it('[R-147] that fail wait, hold up those behind them, and are given up as visible dead letters after a time', async () => {
      const { ledger, clock, row } = await withTask();
      await ledger.saveTask({ ...row, event: 'second' });
      await claimed(ledger);
      expect(await settle(ledger, 1, failed())).toEqual({ became: 'waiting', next: null });
      expect(await claimed(ledger, { holder: 'p2' })).toEqual([]);
      clock.advance(HOUR_MS);
      expect(await claimed(ledger, { holder: 'p2' })).toEqual(['a: created']);
      clock.advance(7 * 24 * HOUR_MS - HOUR_MS);
      const given = await settle(ledger, 1, failed(), { holder: 'p2' });
      expect(given).toMatchObject({ became: 'dead', next: { notification: { seq: 2, tries: 0 } } });
      expect(await list(ledger)).toEqual(['a 1 dead 2 http_503', 'a 2 waiting 0 ']);
      expect(await ledger.countNotifications('acme')).toEqual({ waiting: 1, dead: 1 });
      expect(await settle(ledger, 2, { what: 'delivered' }, { holder: 'p2' })).toMatchObject({ next: null });
      expect(await claimed(ledger)).toEqual([]);
    });

    it('end where the endpoint is gone, until they are asked for again', async () => {
      const { ledger, clock, row } = await withTask();
      const second = await ledger.saveTask({ ...row, event: 'second' });
      await claimed(ledger);
      expect(await settle(ledger, 1, { what: 'gone' })).toEqual({ became: 'dead', next: null });
      const third = await ledger.saveTask({ ...second, event: 'third' });
      clock.advance(HOUR_MS);
      expect(await claimed(ledger)).toEqual([]);
      expect(await list(ledger)).toEqual(['a 1 dead 0 gone', 'a 2 dead 0 gone']);
      expect(await ledger.listPushes('acme', 't1')).toMatchObject([{ state: 'ended' }]);
      await ledger.addPush({
        tenant: 'acme',
        peer: TRIAGE,
        taskId: 't1',
        push: hook('a', { pushId: 'push_other' }),
      });
      await ledger.saveTask({ ...third, event: 'fourth' });
      expect(await claimed(ledger)).toEqual(['a: fourth']);
    });

    it('[R-147] that are dead are tried again, before newer ones, or removed when they have been kept long enough', async () => {
      const { ledger, clock, row } = await withTask();
      const second = await ledger.saveTask({ ...row, event: 'second' });
      await claimed(ledger);
      await settle(ledger, 1, { what: 'gone' });
      const dead = { tenant: 'acme', agent: BILLING, limit: 10 };
      expect(await ledger.retryNotifications({ ...dead, agent: TRIAGE })).toBe(0);
      expect(await ledger.retryNotifications({ ...dead, tenant: 'other' })).toBe(0);
      expect(await ledger.retryNotifications({ ...dead, pushId: 'push_a', seq: 2 })).toBe(1);
      await ledger.saveTask({ ...second, event: 'third' });
      expect(await claimed(ledger)).toEqual(['a: second']);
      // Taken out of the hands of whoever delivers what is newer.
      expect(await ledger.retryNotifications(dead)).toBe(1);
      expect(await settle(ledger, 2, { what: 'delivered' })).toEqual({ became: 'lost', next: null });
      expect(await claimed(ledger)).toEqual(['a: created']);
      await settle(ledger, 1, { what: 'gone' });
      expect(await ledger.pruneNotifications({ ...dead, before: clock.in(0) })).toBe(0);
      clock.advance(1);
      expect(await ledger.pruneNotifications({ ...dead, before: clock.in(0), limit: 2 })).toBe(2);
      expect(await list(ledger)).toEqual(['a 3 dead 0 gone']);
    });

    it('of one task are of its peer alone, bounded, replaced under the same name, and gone when deleted', async () => {
      const { ledger, row } = await withTask();
      const add = (push: NewPush, peer = TRIAGE) =>
        ledger.addPush({ tenant: 'acme', peer, taskId: 't1', push });
      await expect(add(hook('b'), BILLING)).rejects.toMatchObject({ code: 'not_found' });
      await add(
        hook('a', {
          pushId: 'push_new',
          url: 'https://b.example/',
          origin: 'https://b.example',
          token: null,
        }),
      );
      expect(await ledger.listPushes('acme', 't1')).toEqual([
        expect.objectContaining({
          ...hook('a'),
          url: 'https://b.example/',
          origin: 'https://b.example',
          token: null,
        }),
      ]);
      await Promise.allSettled(Array.from({ length: 9 }, (_, n) => add(hook(`n${n}`))));
      expect(await ledger.listPushes('acme', 't1')).toHaveLength(8);
      await expect(add(hook('more'))).rejects.toMatchObject({ code: 'push_limit' });
      await expect(ledger.saveTask({ ...row, push: hook('more') })).rejects.toMatchObject({
        code: 'push_limit',
      });
      expect(await ledger.getTask('acme', TRIAGE, 't1')).toEqual(row);
      expect(await ledger.listPushes('other', 't1')).toEqual([]);
      await ledger.removePush({ tenant: 'other', taskId: 't1', configId: 'a' });
      expect(await ledger.countNotifications('acme')).toEqual({ waiting: 1, dead: 0 });
      const gone = { tenant: 'acme', taskId: 't1', configId: 'a' };
      await ledger.removePush(gone);
      await ledger.removePush(gone);
      expect(await ledger.countNotifications('acme')).toEqual({ waiting: 0, dead: 0 });
      expect(await settle(ledger, 1, { what: 'delivered' })).toEqual({ became: 'lost', next: null });
      await ledger.saveTask({ ...row, push: hook('more'), event: 'second' });
      expect(await claimed(ledger, { limit: 100 })).toHaveLength(8);
    });

    it('begin with an event of their own where one is given, and only when the configuration is new', async () => {
      const { ledger } = await withTask();
      const add = (push: NewPush) =>
        ledger.addPush({ tenant: 'acme', peer: TRIAGE, taskId: 't1', push, event: 'snapshot' });
      await add(hook('b'));
      await add(hook('b'));
      await add(hook('a'));
      expect((await list(ledger)).sort()).toEqual(['a 1 waiting 0 ', 'b 1 waiting 0 ']);
      expect(await claimed(ledger, { without: ['https://a.example'] })).toEqual(['b: snapshot']);
    });

    it('are free again when the process that had them is gone, or has lost sight of them', async () => {
      const { ledger } = await withTask();
      expect(await claimed(ledger)).toEqual(['a: created']);
      expect(await claimed(ledger)).toEqual(['a: created']);
      await ledger.release('p1');
      expect(await claimed(ledger, { holder: 'p2' })).toEqual(['a: created']);
    });
  });
}
