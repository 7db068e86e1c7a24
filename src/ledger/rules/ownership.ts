import { actsFor } from '../../core/index.js';
import type { CaseRow } from '../model.js';

/** Why an agent may not hand a case over at an epoch; the numbers say how far off it is. */
export interface OwnershipRefusal {
  readonly code: 'case_unknown' | 'case_closed' | 'not_owner' | 'epoch_stale' | 'epoch_ahead';
  readonly message: string;
  readonly data: Readonly<Record<string, number>>;
}

/**
 * Whether `agent`, or a person that it acts for, owns the open case at exactly this epoch. Receivers ask before they fetch anything; the
 * acceptance transaction asks again, since only its answer counts.
 */
export function judgeOwnership(row: Owned | null, presented: number, agent: string): OwnershipRefusal | null {
  return judge(row, presented, (owner) => actsFor(owner) === agent);
}

/** The same of exactly this owner, a person or an agent. */
export function judgeOwner(row: Owned | null, presented: number, writer: string): OwnershipRefusal | null {
  return judge(row, presented, (owner) => owner === writer);
}

type Owned = Pick<CaseRow, 'status' | 'owner' | 'epoch'>;

function judge(
  row: Owned | null,
  presented: number,
  owns: (owner: string) => boolean,
): OwnershipRefusal | null {
  if (row === null)
    return { code: 'case_unknown', message: 'The case is not in this ledger.', data: { presented } };
  const current = row.epoch;
  const data = { presented, current };
  if (row.status === 'closed') return { code: 'case_closed', message: 'The case is closed.', data };
  const refusal = judgeEpoch(presented, current);
  if (refusal !== null) return refusal;
  if (!owns(row.owner))
    return { code: 'not_owner', message: 'The sender is not the owner of the case.', data };
  return null;
}

/** Why a write at this epoch is refused, whoever makes it. */
export function judgeEpoch(presented: number, current: number): OwnershipRefusal | null {
  const data = { presented, current };
  if (presented < current) {
    return { code: 'epoch_stale', message: `stale epoch ${presented}, current ${current}`, data };
  }
  if (presented === current) return null;
  return { code: 'epoch_ahead', message: `epoch ${presented} is ahead, current ${current}`, data };
}

/** To this node's own writers only: who owns a case is not for every peer to know. */
export function notOwner(row: CaseRow, data: Readonly<Record<string, number>> = {}) {
  return {
    code: 'not_owner',
    message: `The case is owned by ${row.owner}, at epoch ${row.epoch}.`,
    data: { ...data, current: row.epoch, owner: row.owner },
  } as const;
}
