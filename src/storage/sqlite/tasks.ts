import type Database from 'better-sqlite3';
import { toUtc } from '../../core/index.js';
import type { TaskFilter, TaskRow } from '../../ledger/index.js';
import { exactlyOne } from './errors.js';
import { insertInto, whereGiven } from './keys.js';
import type { Prepared } from './prepared.js';

interface Columns {
  tenant: string;
  id: string;
  peer: string;
  context_id: string;
  state: string;
  version: number;
  status_at: string;
  task: string;
  handoff_id: string | null;
}

const COLUMNS = [
  'tenant',
  'id',
  'peer',
  'context_id',
  'state',
  'version',
  'status_at',
  'task',
  'handoff_id',
] as const satisfies readonly (keyof Columns)[];

const toRow = (row: Columns): TaskRow => ({
  id: row.id,
  tenant: row.tenant,
  peer: row.peer,
  contextId: row.context_id,
  state: row.state,
  version: row.version,
  statusAt: row.status_at,
  task: row.task,
  handoffId: row.handoff_id,
});

const ofRow = (row: TaskRow): Columns => ({
  tenant: row.tenant,
  id: row.id,
  peer: row.peer,
  context_id: row.contextId,
  state: row.state,
  version: row.version,
  status_at: row.statusAt,
  task: row.task,
  handoff_id: row.handoffId,
});

export function taskTable(db: Database.Database, prepared: Prepared) {
  const get = db.prepare<[string, string], Columns>('SELECT * FROM tasks WHERE tenant = ? AND id = ?');
  const add = db.prepare<Columns>(insertInto('tasks', COLUMNS));
  const save = db.prepare<Columns>(
    `UPDATE tasks SET state = @state, version = @version, status_at = @status_at, task = @task
     WHERE tenant = @tenant AND id = @id AND peer = @peer AND version = @version - 1 AND handoff_id IS NULL`,
  );
  return {
    get(tenant: string, id: string): TaskRow | null {
      const row = get.get(tenant, id);
      return row === undefined ? null : toRow(row);
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
      const tasks = prepared.all<Columns>(
        `SELECT * ${where}${page} ORDER BY status_at DESC, id LIMIT @limit`,
        { ...parameters, limit, after_at: after?.statusAt, after_id: after?.id },
      );
      return { tasks: tasks.map(toRow), total };
    },
    add: (row: TaskRow): void => exactlyOne(add.run(ofRow(row))),
    save: (row: TaskRow): void => exactlyOne(save.run(ofRow(row))),
  };
}
