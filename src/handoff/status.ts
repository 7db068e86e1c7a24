import { actsFor, type CaseRef, HoldfastError } from '../core/index.js';
import type { LedgerStore } from '../ledger/index.js';
import type { StatusPointer } from './model.js';

/** Where the case stands, without anything of its content; a person's case is with their node. @throws case_unknown */
export async function statusPointer(ledger: LedgerStore, self: string, ref: CaseRef): Promise<StatusPointer> {
  const row = await ledger.getCase(ref);
  if (!row) throw new HoldfastError('case_unknown', `There is no case ${ref.caseId} in this ledger.`);
  const status =
    row.status === 'closed' ? 'closed' : actsFor(row.owner) === self ? 'owned_here' : 'handed_off';
  return { case_id: ref.caseId, root: ref.root, status, owner: row.owner };
}
