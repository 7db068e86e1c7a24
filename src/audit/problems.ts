import { isHoldfastError } from '../core/index.js';
import type { CaseSnapshot } from '../ledger/index.js';
import { verifyChain } from './chain.js';
import { compareWithLedger } from './compare.js';
import { replay } from './replay.js';

/** What is wrong with the audit of one case: its chain, or else where the ledger says something other than what it replays to. */
export function problemsOf(snapshot: CaseSnapshot): string[] {
  const chain = verifyChain(snapshot.audit);
  if (!chain.ok) return [`entry ${chain.seq}: ${chain.problem}`];
  try {
    return compareWithLedger(replay(snapshot.audit), snapshot);
  } catch (error) {
    if (isHoldfastError(error) && error.code === 'audit_broken') return [error.message];
    throw error;
  }
}
