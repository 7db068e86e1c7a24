import type { CaseRow } from '../../ledger/index.js';
import type { CaseFilter } from '../engine.js';
import { type CaseColumns, toCase } from '../rows/cases.js';
import { type Ask, listOf } from './keys.js';

const BY_ID = {
  name: 'cases by id',
  text: 'SELECT * FROM holdfast.cases WHERE ARRAY[tenant, case_id] = ARRAY[$1, $2]::text[] ORDER BY ord',
};

export const caseTable = (ask: Ask) => ({
  byId: async (tenant: string, caseId: string): Promise<CaseRow[]> =>
    (await ask<CaseColumns>(BY_ID, [tenant, caseId])).map(toCase),
  async list(tenant: string, { status, owner, limit }: CaseFilter): Promise<CaseRow[]> {
    const found = await ask<CaseColumns>(
      ...listOf('cases', tenant, { status, owner }, { order: 'ord DESC', limit }),
    );
    return found.map(toCase);
  },
});
