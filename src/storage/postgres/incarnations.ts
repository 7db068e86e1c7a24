import type { AwaitedPeer, Incarnation, Lease, LedgerView, ReceiptPage } from '../../ledger/index.js';
import { type LedgerReads, pageOf, type ReceiptPlace } from '../engine.js';
import {
  type AwaitedColumns,
  type HeardColumns,
  type IncarnationColumns,
  toAwaited,
  toHeard,
  toIncarnation,
} from '../rows/incarnations.js';
import { type OfferColumns, toOffer } from '../rows/offers.js';
import { type TransferColumns, toTransfer } from '../rows/transfers.js';
import type { Session } from './connection.js';
import type { Ask } from './keys.js';

/** Whose incarnation a command is judged by, and what it may read of the case besides its slice. */
export interface PartyScope {
  readonly agent: string;
  /** Who sent what is to be accepted. */
  readonly peer?: string;
  /** Also where the case is of no `separate` kind. */
  readonly always?: true;
}

/** What only commands on cases of `separate` kinds read. */
export type Parties = Pick<
  LedgerView,
  'incarnationOf' | 'awaited' | 'leasesOf' | 'heardFrom' | 'offersOf' | 'transfers'
>;

interface Columns {
  incarnation: IncarnationColumns | null;
  awaited: AwaitedColumns[] | null;
  leases: Lease[] | null;
  heard: HeardColumns | null;
  offers: OfferColumns[] | null;
  transfers: TransferColumns[] | null;
}

const THIS_CASE = (name: string) => `${name}.tenant = $2 AND ${name}.root = $4 AND ${name}.case_id = $5`;
const NOW = `to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
const PARTIES = {
  name: 'parties',
  text: `SELECT (SELECT row_to_json(i) FROM holdfast.incarnations i WHERE i.agent = $1) AS incarnation,
    (SELECT json_agg(a ORDER BY a.peer) FROM holdfast.awaited_peers a WHERE a.agent = $1) AS awaited,
    (SELECT json_agg(h ORDER BY h.holder) FROM holdfast.holders h
      WHERE starts_with(h.holder, $1 || '#') AND h.until > coalesce($6, ${NOW})) AS leases,
    (SELECT row_to_json(p) FROM holdfast.peer_incarnations p
      WHERE p.tenant = $2 AND p.agent = $1 AND p.peer = $3) AS heard,
    (SELECT json_agg(o ORDER BY o.ord) FROM holdfast.offers o WHERE ${THIS_CASE('o')}) AS offers,
    (SELECT json_agg(t ORDER BY t.new_epoch) FROM holdfast.transfers t WHERE ${THIS_CASE('t')}) AS transfers`,
};

export async function partiesOf(
  session: Session,
  { agent, peer }: PartyScope,
  of: { readonly tenant: string; readonly ref?: { readonly root: string; readonly caseId: string } },
  given: string | null,
): Promise<Parties> {
  const values = [agent, of.tenant, peer ?? null, of.ref?.root ?? null, of.ref?.caseId ?? null, given];
  const [row] = (await session.query<Columns>(PARTIES, values)) as [Columns];
  return {
    incarnationOf: () => (row.incarnation === null ? null : toIncarnation(row.incarnation)),
    awaited: () => (row.awaited ?? []).map(toAwaited),
    leasesOf: () => row.leases ?? [],
    heardFrom: () => toHeard(row.heard),
    offersOf: () => (row.offers ?? []).map(toOffer),
    transfers: () => (row.transfers ?? []).map(toTransfer),
  };
}

/** Of a kind that this ledger alone decides about: nobody is awaited, and nothing has moved elsewhere. */
export const NO_PARTIES: Parties = {
  incarnationOf: () => null,
  awaited: () => [],
  leasesOf: () => [],
  heardFrom: () => null,
  offersOf: () => [],
  transfers: () => [],
};

function unnamed(): never {
  throw new Error('The scope of the command names nobody whose peers it may ask for.');
}

/** A rule that reads here what its scope has not named would find nothing, and permit what it should refuse. */
export const UNNAMED_PARTIES: Parties = {
  incarnationOf: unnamed,
  awaited: unnamed,
  leasesOf: unnamed,
  heardFrom: unnamed,
  offersOf: unnamed,
  transfers: unnamed,
};

const ONE = {
  name: 'incarnation of an agent',
  text: 'SELECT * FROM holdfast.incarnations WHERE agent = $1',
};
const AWAITED = {
  name: 'awaited peers',
  text: 'SELECT * FROM holdfast.awaited_peers WHERE agent = $1 ORDER BY peer',
};
const UNANSWERED = {
  name: 'unanswered peers',
  text: "SELECT * FROM holdfast.awaited_peers WHERE state = 'waiting' AND since <= $1 ORDER BY since, agent, peer",
};
const LEASES = {
  name: 'leases of an agent',
  text: `SELECT holder, until FROM holdfast.holders
    WHERE starts_with(holder, $1 || '#') AND until > coalesce($2, ${NOW}) ORDER BY holder`,
};
const RECEIPTS = {
  name: 'receipts of an agent',
  text: `SELECT * FROM holdfast.transfers WHERE (sender = $1 OR to_agent = $1) AND tenant = ANY ($2)
    AND (tenant, root, case_id, new_epoch) > ($3, $4, $5, $6::bigint)
    ORDER BY tenant, root, case_id, new_epoch LIMIT $7`,
};
const FIRST: ReceiptPlace = ['', '', '', 0];

export const incarnationTable = (ask: Ask) => ({
  async of(agent: string): Promise<Incarnation | null> {
    const [row] = await ask<IncarnationColumns>(ONE, [agent]);
    return row === undefined ? null : toIncarnation(row);
  },
  awaited: async (agent: string): Promise<AwaitedPeer[]> =>
    (await ask<AwaitedColumns>(AWAITED, [agent])).map(toAwaited),
  unanswered: async (before: string): Promise<AwaitedPeer[]> =>
    (await ask<AwaitedColumns>(UNANSWERED, [before])).map(toAwaited),
  leases: (agent: string, given: string | null): Promise<Lease[]> => ask<Lease>(LEASES, [agent, given]),
  async receipts(
    agent: string,
    { tenants, after, limit }: Parameters<LedgerReads['receipts']>[1],
  ): Promise<ReceiptPage> {
    const rows = await ask<TransferColumns>(RECEIPTS, [agent, tenants, ...(after ?? FIRST), limit + 1]);
    return pageOf(rows.map(toTransfer), limit);
  },
});
