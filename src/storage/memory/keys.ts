import type { AcceptanceKey, CaseRef } from '../../core/index.js';

export const refKey = (ref: CaseRef) => [ref.tenant, ref.root, ref.caseId] as const;
export const attemptKey = (key: AcceptanceKey) =>
  [key.tenant, key.root, key.sender, key.handoffId, key.attempt] as const;
