import { toUtc } from '../../core/index.js';
import type { AwaitedPeer, HeardIncarnation, Incarnation, Lease, Transfer } from '../../ledger/index.js';
import { type ChangeHandlers, type IncarnationQueries, pageOf } from '../engine.js';
import type { Table } from './tables.js';

export interface IncarnationTables {
  readonly incarnations: Table<Incarnation>;
  readonly awaited: Table<AwaitedPeer>;
  readonly heardFrom: Table<HeardIncarnation>;
  readonly holders: Table<Lease>;
  readonly transfers: Table<Transfer>;
}

type IncarnationChange = 'set_incarnation' | 'drop_awaited' | 'set_awaited' | 'set_heard' | 'check_heard';

export function incarnationHandlersOf({
  incarnations,
  awaited,
  heardFrom,
}: IncarnationTables): Pick<ChangeHandlers, IncarnationChange> {
  return {
    set_incarnation({ row }) {
      if (row.rev === 1) incarnations.add(row, row.agent);
      else incarnations.replace(row, ({ rev }) => rev === row.rev - 1, row.agent);
    },
    drop_awaited: ({ agent }) => awaited.remove((row) => row.agent === agent),
    set_awaited: ({ row }) => awaited.put(row, row.agent, row.peer),
    set_heard({ row }) {
      const key = [row.tenant, row.agent, row.peer] as const;
      if (row.rev === 1) heardFrom.add(row, ...key);
      else heardFrom.replace(row, ({ rev }) => rev === row.rev - 1, ...key);
    },
    // What the rule has read is what is there: it is all one step.
    check_heard: () => undefined,
  };
}

export function incarnationQueriesOf(
  { incarnations, awaited, heardFrom, holders, transfers }: IncarnationTables,
  now: Date,
): IncarnationQueries {
  const waiting = (row: AwaitedPeer) => row.state === 'waiting';
  return {
    incarnationOf: (agent) => incarnations.get(agent),
    awaited: (agent) =>
      awaited.where((row) => row.agent === agent).sort((a, b) => (a.peer < b.peer ? -1 : 1)),
    leasesOf: (agent) =>
      holders.where(({ holder, until }) => holder.startsWith(`${agent}#`) && until > toUtc(now)),
    heardFrom: (tenant, agent, peer) => heardFrom.get(tenant, agent, peer),
    unansweredSince: (before) => awaited.where((row) => waiting(row) && row.since <= before),
    receipts: (agent, { tenants, after, limit }) => {
      const its = transfers
        .where(
          ({ key, toAgent }) => tenants.includes(key.tenant) && (key.sender === agent || toAgent === agent),
        )
        .map((row) => ({ place: [row.ref.tenant, row.ref.root, row.ref.caseId, row.newEpoch] as const, row }))
        .sort((a, b) => compare(a.place, b.place));
      return pageOf(
        its.filter(({ place }) => after === null || compare(place, after) > 0).map(({ row }) => row),
        limit,
      );
    },
  };
}

type Place = readonly (string | number)[];

function compare(a: Place, b: Place): number {
  for (const [at, part] of a.entries()) {
    const other = b[at] as string | number;
    if (part !== other) return part < other ? -1 : 1;
  }
  return 0;
}
