import type { Verdict } from './model.js';

/** The offer may be accepted, as far as this check can see. */
export function accept(): Verdict {
  return { verdict: 'accept' };
}

/** Its sender has to answer first; the check then runs again, with `clarifications`. */
export function clarify(question: string): Verdict {
  return { verdict: 'clarify', question };
}

/** Somebody decides it, until `accept_by`. */
export function decideLater(): Verdict {
  return { verdict: 'later' };
}

/** `code` is a rejection code of the error table, or one that the contract declares; `reason` is for people. */
export function reject(
  code: string,
  reason: string,
  more: Omit<Extract<Verdict, { verdict: 'reject' }>, 'verdict' | 'code' | 'reason'> = {},
): Verdict {
  return { verdict: 'reject', code, reason, ...more };
}
