import type { WorkItem } from '../../ledger/index.js';
import type { WorkFilter } from '../engine.js';
import { toWork, type WorkColumns } from '../rows/work.js';
import { type Ask, listOf } from './keys.js';

const GET = { name: 'work item', text: 'SELECT * FROM holdfast.work_items WHERE tenant = $1 AND id = $2' };

export const workTable = (ask: Ask) => ({
  async get(tenant: string, id: string): Promise<WorkItem | null> {
    const [row] = await ask<WorkColumns>(GET, [tenant, id]);
    return row === undefined ? null : toWork(row);
  },
  async list(tenant: string, { owner, state, caseId, limit }: WorkFilter): Promise<WorkItem[]> {
    const given = { owner, state, case_id: caseId };
    return (await ask<WorkColumns>(...listOf('work_items', tenant, given, { order: 'ord', limit }))).map(
      toWork,
    );
  },
});
