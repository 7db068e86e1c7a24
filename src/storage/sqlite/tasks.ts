import type Database from 'better-sqlite3';
import { toUtc } from '../../core/index.js';
import type { TaskFilter, TaskRow } from '../../ledger/index.js';
import { ofTask, TASK_COLUMNS, type TaskColumns, toTask } from '../rows/tasks.js';
import { exactlyOne } from './errors.js';
import { insertInto, whereGiven } from './keys.js';
import type { Prepared } from './prepared.js';

export function taskTable(db: Database.Database, prepared: Prepared) {
  const get = db.prepare<[string, string], TaskColumns>('SELECT * FROM tasks WHERE tenant = ? AND id = ?');
  const add = db.prepare<TaskColumns>(insertInto('tasks', TASK_COLUMNS));
  const set = `UPDATE tasks SET state = @state, version = @version, status_at = @status_at, task = @task
     WHERE tenant = @tenant AND id = @id AND peer = @peer AND version = @version - 1`;
  const save = db.prepare<TaskColumns>(`${set} AND handoff_id IS NULL`);
  const saveOffer = db.prepare<TaskColumns>(`${set} AND handoff_id = @handoff_id`);
  return {
    get(tenant: string, id: string): TaskRow | null {
      const row = get.get(tenant, id);
      return row === undefined ? null : toTask(row);
    },
    list({ tenant, peer, contextId, state, since, limit, after }: TaskFilter) {
      const given = { peer, context_id: contextId, state };
      const changed = since === undefined ? '' : ' AND status_at >= @since';
      const where = `FROM tasks WHERE tenant = @tenant${whereGiven(given)}${changed}`;
      const parameters = {
        tenant,
        ...given,
        since: since === undefined ? undefined : toUtc(new Date(since)),
      };
      const page =
        after === undefined
          ? ''
          : ' AND (status_at < @after_at OR (status_at = @after_at AND id > @after_id))';
      const total = prepared.all<{ n: number }>(`SELECT count(*) AS n ${where}`, parameters)[0]?.n ?? 0;
      const tasks = prepared.all<TaskColumns>(
        `SELECT * ${where}${page} ORDER BY status_at DESC, id LIMIT @limit`,
        { ...parameters, limit, after_at: after?.statusAt, after_id: after?.id },
      );
      return { tasks: tasks.map(toTask), total };
    },
    add: (row: TaskRow): void => exactlyOne(add.run(ofTask(row))),
    saveOffer: (row: TaskRow): void => exactlyOne(saveOffer.run(ofTask(row))),
    save: (row: TaskRow): void => exactlyOne(save.run(ofTask(row))),
  };
}
