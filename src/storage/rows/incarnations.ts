import type { AwaitedPeer, HeardIncarnation, Incarnation } from '../../ledger/index.js';

export interface IncarnationColumns {
  agent: string;
  incarnation: string;
  since: string;
  holders: string;
  rev: number;
}

export const INCARNATION_COLUMNS = [
  'agent',
  'incarnation',
  'since',
  'holders',
  'rev',
] as const satisfies readonly (keyof IncarnationColumns)[];

export const toIncarnation = ({ holders, ...row }: IncarnationColumns): Incarnation => ({
  agent: row.agent,
  incarnation: row.incarnation,
  since: row.since,
  holders: JSON.parse(holders),
  rev: row.rev,
});

export const ofIncarnation = (row: Incarnation): IncarnationColumns => ({
  ...row,
  holders: JSON.stringify(row.holders),
});

export interface AwaitedColumns {
  agent: string;
  peer: string;
  incarnation: string;
  contracts: string;
  state: AwaitedPeer['state'];
  since: string;
  by: string | null;
  reason: string | null;
}

export const AWAITED_COLUMNS = [
  'agent',
  'peer',
  'incarnation',
  'contracts',
  'state',
  'since',
  'by',
  'reason',
] as const satisfies readonly (keyof AwaitedColumns)[];

export const toAwaited = (row: AwaitedColumns): AwaitedPeer => ({
  agent: row.agent,
  peer: row.peer,
  incarnation: row.incarnation,
  contracts: JSON.parse(row.contracts),
  state: row.state,
  since: row.since,
  by: row.by,
  reason: row.reason,
});

export const ofAwaited = (row: AwaitedPeer): AwaitedColumns => ({
  ...row,
  contracts: JSON.stringify(row.contracts),
});

export interface HeardColumns {
  tenant: string;
  agent: string;
  peer: string;
  incarnation: string;
  since: string;
  open: string;
  rev: number;
}

export const HEARD_COLUMNS = [
  'tenant',
  'agent',
  'peer',
  'incarnation',
  'since',
  'open',
  'rev',
] as const satisfies readonly (keyof HeardColumns)[];

/** `null` where the peer has said nothing, and only its place is kept. */
export const toHeard = (row: HeardColumns | null | undefined): HeardIncarnation | null =>
  row === null || row === undefined || row.rev === 0
    ? null
    : {
        tenant: row.tenant,
        agent: row.agent,
        peer: row.peer,
        incarnation: row.incarnation,
        since: row.since,
        open: JSON.parse(row.open),
        rev: row.rev,
      };

export const ofHeard = (row: HeardIncarnation): HeardColumns => ({ ...row, open: JSON.stringify(row.open) });
