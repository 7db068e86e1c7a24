import type { AcceptanceKey, CaseRef } from '../../core/index.js';
import type { Guard } from '../../ledger/index.js';

export interface RefColumns {
  tenant: string;
  root: string;
  case_id: string;
}

export interface KeyColumns {
  tenant: string;
  root: string;
  sender: string;
  handoff_id: string;
  attempt: number;
}

export const ofRef = (ref: CaseRef): RefColumns => ({
  tenant: ref.tenant,
  root: ref.root,
  case_id: ref.caseId,
});

export const toRef = (row: RefColumns): CaseRef => ({
  tenant: row.tenant,
  root: row.root,
  caseId: row.case_id,
});

export const ofKey = (key: AcceptanceKey): KeyColumns => ({
  tenant: key.tenant,
  root: key.root,
  sender: key.sender,
  handoff_id: key.handoffId,
  attempt: key.attempt,
});

export const toKey = (row: KeyColumns): AcceptanceKey => ({
  tenant: row.tenant,
  root: row.root,
  sender: row.sender,
  handoffId: row.handoff_id,
  attempt: row.attempt,
});

export const ofGuard = (guard: Guard) => ({
  ...ofRef(guard.ref),
  guard_owner: guard.owner,
  guard_epoch: guard.epoch,
});
