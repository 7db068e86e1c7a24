import { describe, expect, it } from 'vitest';
import type { LedgerStore, TaskRow } from '../../../src/ledger/index.js';
import { acceptance, BILLING, ledgerWithCase, type OpenLedger, TRIAGE } from './fixtures.js';

const task = (id: string, over: Partial<TaskRow> = {}): Omit<TaskRow, 'version'> => ({
  id,
  tenant: 'acme',
  peer: TRIAGE,
  contextId: 'ctx-1',
  state: 'TASK_STATE_WORKING',
  statusAt: '2026-03-01T10:00:00.000Z',
  task: `{"id":"${id}"}`,
  handoffId: null,
  ...over,
});

async function ids(ledger: LedgerStore, over: Partial<Parameters<LedgerStore['listTasks']>[0]> = {}) {
  const page = await ledger.listTasks({ tenant: 'acme', peer: TRIAGE, limit: 10, ...over });
  return [page.tasks.map((row) => row.id).join(' '), page.total];
}

export function taskSuite(open: OpenLedger): void {
  describe('tasks', () => {
    it('are created once, and visible to their peer alone', async () => {
      const { ledger } = await ledgerWithCase(open);
      const stored = await ledger.createTask(task('t1'));
      expect(stored).toEqual({ ...task('t1'), version: 1 });
      await expect(ledger.createTask(task('t1', { peer: BILLING }))).rejects.toMatchObject({
        code: 'task_conflict',
      });
      expect(await ledger.getTask('acme', TRIAGE, 't1')).toEqual(stored);
      expect(await ledger.getTask('acme', BILLING, 't1')).toBeNull();
      expect(await ledger.getTask('other', TRIAGE, 't1')).toBeNull();
    });

    it('are saved by compare-and-set, and no more once terminal', async () => {
      const { ledger } = await ledgerWithCase(open);
      const first = await ledger.createTask(task('t1'));
      const results = await Promise.allSettled([
        ledger.saveTask({ ...first, task: '{"n":1}' }),
        ledger.saveTask({ ...first, task: '{"n":2}' }),
      ]);
      expect(results.map((result) => result.status).sort()).toEqual(['fulfilled', 'rejected']);
      const second = await ledger.getTask('acme', TRIAGE, 't1');
      expect(second).toMatchObject({ version: 2 });
      if (second === null) return;
      await expect(ledger.saveTask({ ...second, peer: BILLING })).rejects.toMatchObject({
        code: 'task_conflict',
      });
      const done = await ledger.saveTask({ ...second, state: 'TASK_STATE_CANCELED' });
      await expect(ledger.saveTask({ ...done, state: 'TASK_STATE_COMPLETED' })).rejects.toMatchObject({
        code: 'task_conflict',
      });
      expect(await ledger.getTask('acme', TRIAGE, 't1')).toEqual(done);
      await expect(ledger.saveTask({ ...done, id: 't9' })).rejects.toMatchObject({ code: 'task_conflict' });
    });

    it("leave the task of an offer to the ledger's own transactions", async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await expect(ledger.createTask(task('t1', { handoffId: 'CASE-1:4' }))).rejects.toMatchObject({
        code: 'task_conflict',
      });
      const command = acceptance(clock);
      await ledger.accept({ ...command, task: { ...command.task, state: 'TASK_STATE_WORKING' } });
      const stored = await ledger.getTask('acme', TRIAGE, command.task.id);
      if (stored === null) throw new Error('the task of the decision is missing');
      await expect(ledger.saveTask({ ...stored, task: '{}' })).rejects.toMatchObject({
        code: 'task_conflict',
      });
    });

    it('are listed newest first, page by page, within the peer', async () => {
      const { ledger } = await ledgerWithCase(open);
      const at = (second: number) => `2026-03-01T10:00:0${second}.000Z`;
      await ledger.createTask(task('t1', { statusAt: at(1) }));
      await ledger.createTask(task('t3', { statusAt: at(2), contextId: 'ctx-2' }));
      await ledger.createTask(task('t2', { statusAt: at(2), state: 'TASK_STATE_FAILED' }));
      await ledger.createTask(task('t4', { statusAt: at(3) }));
      await ledger.createTask(task('t5', { peer: BILLING }));
      expect(await ids(ledger)).toEqual(['t4 t2 t3 t1', 4]);
      expect(await ids(ledger, { limit: 2 })).toEqual(['t4 t2', 4]);
      expect(await ids(ledger, { limit: 2, after: { statusAt: at(2), id: 't2' } })).toEqual(['t3 t1', 4]);
      expect(await ids(ledger, { contextId: 'ctx-2' })).toEqual(['t3', 1]);
      expect(await ids(ledger, { state: 'TASK_STATE_FAILED' })).toEqual(['t2', 1]);
      expect(await ids(ledger, { since: '2026-03-01T10:00:02Z' })).toEqual(['t4 t2 t3', 3]);
      expect(await ids(ledger, { peer: BILLING })).toEqual(['t5', 1]);
    });
  });
}
