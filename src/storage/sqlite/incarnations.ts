import type Database from 'better-sqlite3';
import type { AwaitedPeer, HeardIncarnation, Incarnation, Lease, ReceiptPage } from '../../ledger/index.js';
import { type LedgerReads, pageOf, type ReceiptPlace } from '../engine.js';
import {
  AWAITED_COLUMNS,
  type AwaitedColumns,
  HEARD_COLUMNS,
  type HeardColumns,
  INCARNATION_COLUMNS,
  type IncarnationColumns,
  ofAwaited,
  ofHeard,
  ofIncarnation,
  toAwaited,
  toHeard,
  toIncarnation,
} from '../rows/incarnations.js';
import { type TransferColumns, toTransfer } from '../rows/transfers.js';
import { exactlyOne } from './errors.js';
import { insertInto } from './keys.js';

const IS_NEXT = (table: string) => `WHERE ${table}.rev = excluded.rev - 1`;
const FIRST: ReceiptPlace = ['', '', '', 0];

export function incarnationTable(db: Database.Database) {
  const get = db.prepare<[string], IncarnationColumns>('SELECT * FROM incarnations WHERE agent = ?');
  const set = db.prepare<IncarnationColumns>(
    `${insertInto('incarnations', INCARNATION_COLUMNS)} ON CONFLICT (agent) DO UPDATE SET incarnation = excluded.incarnation,
     since = excluded.since, holders = excluded.holders, rev = excluded.rev ${IS_NEXT('incarnations')}`,
  );
  const awaited = db.prepare<[string], AwaitedColumns>(
    'SELECT * FROM awaited_peers WHERE agent = ? ORDER BY peer',
  );
  const unanswered = db.prepare<[string], AwaitedColumns>(
    "SELECT * FROM awaited_peers WHERE state = 'waiting' AND since <= ? ORDER BY since, agent, peer",
  );
  const dropAwaited = db.prepare<[string]>('DELETE FROM awaited_peers WHERE agent = ?');
  const setAwaited = db.prepare<AwaitedColumns>(
    `${insertInto('awaited_peers', AWAITED_COLUMNS)} ON CONFLICT (agent, peer) DO UPDATE SET incarnation = excluded.incarnation,
     contracts = excluded.contracts, state = excluded.state, since = excluded.since, by = excluded.by, reason = excluded.reason`,
  );
  const leases = db.prepare<[string, string, string], Lease>(
    'SELECT holder, until FROM holders WHERE substr(holder, 1, length(?)) = ? AND until > ? ORDER BY holder',
  );
  const heard = db.prepare<[string, string, string], HeardColumns>(
    'SELECT * FROM peer_incarnations WHERE tenant = ? AND agent = ? AND peer = ?',
  );
  const setHeard = db.prepare<HeardColumns>(
    `${insertInto('peer_incarnations', HEARD_COLUMNS)} ON CONFLICT (tenant, agent, peer) DO UPDATE SET
     incarnation = excluded.incarnation, since = excluded.since, open = excluded.open, rev = excluded.rev
     ${IS_NEXT('peer_incarnations')}`,
  );
  const receipts = db.prepare<
    { agent: string; tenants: string; limit: number; a: string; b: string; c: string; d: number },
    TransferColumns
  >(
    `SELECT * FROM transfers WHERE (sender = @agent OR to_agent = @agent)
       AND tenant IN (SELECT value FROM json_each(@tenants)) AND (tenant, root, case_id, new_epoch) > (@a, @b, @c, @d)
     ORDER BY tenant, root, case_id, new_epoch LIMIT @limit`,
  );
  return {
    of(agent: string): Incarnation | null {
      const row = get.get(agent);
      return row === undefined ? null : toIncarnation(row);
    },
    awaited: (agent: string): AwaitedPeer[] => awaited.all(agent).map(toAwaited),
    unanswered: (before: string): AwaitedPeer[] => unanswered.all(before).map(toAwaited),
    leases: (agent: string, now: string): Lease[] => leases.all(`${agent}#`, `${agent}#`, now),
    heard: (tenant: string, agent: string, peer: string): HeardIncarnation | null =>
      toHeard(heard.get(tenant, agent, peer)),
    receipts(agent: string, { tenants, after, limit }: Parameters<LedgerReads['receipts']>[1]): ReceiptPage {
      const [a, b, c, d] = after ?? FIRST;
      const given = { agent, tenants: JSON.stringify(tenants), limit: limit + 1, a, b, c, d };
      return pageOf(receipts.all(given).map(toTransfer), limit);
    },
    set: (row: Incarnation): void => exactlyOne(set.run(ofIncarnation(row))),
    dropAwaited: (agent: string): void => void dropAwaited.run(agent),
    setAwaited: (row: AwaitedPeer): void => exactlyOne(setAwaited.run(ofAwaited(row))),
    setHeard: (row: HeardIncarnation): void => exactlyOne(setHeard.run(ofHeard(row))),
  };
}
