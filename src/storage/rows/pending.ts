import type { PendingOffer } from '../../ledger/index.js';
import { type KeyColumns, ofKey, toKey, toRef } from './keys.js';

export interface PendingColumns extends KeyColumns {
  case_id: string;
  kind: string;
  to_agent: string;
  contract: string;
  digest: string;
  message: string | null;
  token_id: string;
  task_id: string;
  accept_by: string;
  state: PendingOffer['state'];
  clarifications: string;
  received_at: string;
  holder: string | null;
  rev: number;
}

export const PENDING_COLUMNS = [
  'tenant',
  'root',
  'sender',
  'handoff_id',
  'attempt',
  'case_id',
  'kind',
  'to_agent',
  'contract',
  'digest',
  'message',
  'token_id',
  'task_id',
  'accept_by',
  'state',
  'clarifications',
  'received_at',
  'holder',
  'rev',
] as const satisfies readonly (keyof PendingColumns)[];

export const toPending = (row: PendingColumns): PendingOffer => ({
  key: toKey(row),
  ref: toRef(row),
  kind: row.kind,
  toAgent: row.to_agent,
  contract: row.contract,
  digest: row.digest,
  message: row.message,
  tokenId: row.token_id,
  taskId: row.task_id,
  acceptBy: row.accept_by,
  state: row.state,
  clarifications: JSON.parse(row.clarifications),
  receivedAt: row.received_at,
  holder: row.holder,
  rev: row.rev,
});

export const ofPending = (row: PendingOffer): PendingColumns => ({
  ...ofKey(row.key),
  case_id: row.ref.caseId,
  kind: row.kind,
  to_agent: row.toAgent,
  contract: row.contract,
  digest: row.digest,
  message: row.message,
  token_id: row.tokenId,
  task_id: row.taskId,
  accept_by: row.acceptBy,
  state: row.state,
  clarifications: JSON.stringify(row.clarifications),
  received_at: row.receivedAt,
  holder: row.holder,
  rev: row.rev,
});

/** Of rows `o` in SQL: in time at `now`, and waiting for somebody, or being checked since before `patience`. */
export function isAwaited(now: string, patience: string): string {
  return `o.state <> 'decided' AND o.accept_by >= ${now}
    AND (o.state = 'waiting' OR (o.state = 'deciding' AND o.received_at < ${patience}))`;
}
