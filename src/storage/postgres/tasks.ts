import { toUtc } from '../../core/index.js';
import type { TaskFilter, TaskRow } from '../../ledger/index.js';
import { type TaskColumns, toTask } from '../rows/tasks.js';
import type { Ask } from './keys.js';

/** Page and total in one statement, so that they tell of one state. */
const PAGE = {
  name: 'tasks',
  text: `WITH matching AS (
      SELECT * FROM holdfast.tasks WHERE tenant = $1 AND peer = $2 AND ($3::text IS NULL OR context_id = $3)
        AND ($4::text IS NULL OR state = $4) AND ($5::text IS NULL OR status_at >= $5)),
    page AS (SELECT * FROM matching WHERE $6::text IS NULL OR status_at < $6 OR (status_at = $6 AND id > $7)
      ORDER BY status_at DESC, id LIMIT $8)
    SELECT (SELECT count(*) FROM matching) AS total,
      (SELECT coalesce(json_agg(p ORDER BY p.status_at DESC, p.id), '[]') FROM page p) AS tasks`,
};

export const taskTable = (ask: Ask) => ({
  async list({ tenant, peer, contextId, state, since, limit, after }: TaskFilter) {
    const from = since === undefined ? undefined : toUtc(new Date(since));
    const values = [tenant, peer, contextId, state, from, after?.statusAt, after?.id, limit];
    const [found] = await ask<{ total: number; tasks: TaskColumns[] }>(PAGE, values);
    return { tasks: (found?.tasks ?? []).map(toTask) satisfies TaskRow[], total: found?.total ?? 0 };
  },
});
