import type { ErrorCode } from '../core/index.js';

/**
 * What a fence answers, in both databases: the SQLSTATE of PostgreSQL, and the word after `holdfast:` in a message of SQLite. Stable.
 * A row that was not presented is a fault of the program that writes; the others are verdicts of the ledger.
 */
export const FENCE_REFUSALS = {
  HF001: 'usage',
  HF002: 'epoch_stale',
  HF003: 'not_owner',
  HF004: 'case_unknown',
  HF005: 'case_quarantined',
  HF006: 'case_closed',
  HF007: 'epoch_ahead',
  HF008: 'usage',
  HF009: 'effects_frozen',
} as const satisfies Record<string, ErrorCode>;

/** HF001 not presented, HF002 stale epoch, HF003 not the owner, HF004 unknown case, HF005 quarantined, HF006 closed, HF007 epoch ahead, HF008 a statement that no fence lets through, HF009 offered to a receiver with a ledger of its own. */
export type FenceState = keyof typeof FENCE_REFUSALS;

export function isFenceState(state: unknown): state is FenceState {
  return typeof state === 'string' && Object.hasOwn(FENCE_REFUSALS, state);
}
