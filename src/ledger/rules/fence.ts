import type { OwnerWrite } from '../commands.js';
import type { CaseRow } from '../model.js';
import { refuse } from './facts.js';
import { judgeEpoch, notOwner } from './ownership.js';
import type { Guard, LedgerView, Ruling } from './ruling.js';

export interface Standing {
  readonly case: CaseRow;
  readonly guard: Guard;
}

/**
 * The fence that every write passes (H3). An older epoch is stale whoever presents it, even on a closed case, so that a
 * former owner learns the truth about itself first. The statement that writes checks the guard again.
 */
export function fence(view: LedgerView, write: string, command: OwnerWrite): Standing | Ruling<never> {
  const { ref, writer, epoch: presented } = command;
  const row = view.case(ref);
  if (row === null) return refuse({ write, ref, writer, code: 'case_unknown', data: { presented } });
  const current = row.epoch;
  const refusal = judgeEpoch(presented, current);
  if (refusal !== null) return refuse({ write, ref, writer, ...refusal });
  const data = { presented, current };
  if (row.owner !== writer) return refuse({ write, ref, writer, ...notOwner(row, data) });
  if (row.status === 'closed') return refuse({ write, ref, writer, code: 'case_closed', data });
  return { case: row, guard: { ref, owner: row.owner, epoch: row.epoch } };
}

export function isRefused(standing: Standing | Ruling<never>): standing is Ruling<never> {
  return 'audit' in standing;
}
