import type { CaseRef } from '../../core/index.js';
import type { DecisionRow } from '../../ledger/index.js';
import { type DecisionColumns, toDecision } from '../rows/decisions.js';
import { type Ask, listOf } from './keys.js';

export const decisionTable = (ask: Ask) => ({
  /** Newest first. */
  async by({ tenant, root, caseId }: CaseRef, sender: string, limit: number): Promise<DecisionRow[]> {
    const given = { root, case_id: caseId, sender };
    const found = await ask<DecisionColumns>(
      ...listOf('decisions', tenant, given, { order: 'ord DESC', limit }),
    );
    return found.map(toDecision);
  },
});
