import type { Verdict } from './model.js';

/** The offer may be accepted, as far as this check can see. */
export function accept(): Verdict {
  return { verdict: 'accept' };
}

/** `code` is a rejection code of the error table, or one that the contract declares; `reason` is for people. */
export function reject(
  code: string,
  reason: string,
  more: Omit<Extract<Verdict, { verdict: 'reject' }>, 'verdict' | 'code' | 'reason'> = {},
): Verdict {
  return { verdict: 'reject', code, reason, ...more };
}
