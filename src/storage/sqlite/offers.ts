import type Database from 'better-sqlite3';
import type { AcceptanceKey, CaseRef } from '../../core/index.js';
import {
  type Guard,
  type OfferClaim,
  type OfferRow,
  offerRow,
  type StoredOffer,
} from '../../ledger/index.js';
import type { HandoffKey, OfferFilter } from '../engine.js';
import { type KeyColumns, ofGuard, ofKey, ofRef, type RefColumns } from '../rows/keys.js';
import { OFFER_COLUMNS, type OfferColumns, ofOffer, toOffer } from '../rows/offers.js';
import { exactlyOne } from './errors.js';
import { insertInto, isFree, THIS_ATTEMPT, THIS_CASE, whereGiven } from './keys.js';
import type { Prepared } from './prepared.js';

/** The id under which an offer is claimed. */
const CLAIM_ID = "o.root || ' ' || o.sender || ' ' || o.handoff_id || ' ' || o.attempt";

/** Spelled as in the partial index, so that SQLite uses it. */
const IS_OPEN = "state IN ('intended', 'offered', 'in_doubt')";

/** Open, or accepted and the receipt not kept. Spelled as in its index, too. */
const IS_UNFINISHED = "receipt IS NULL AND state IN ('intended', 'offered', 'in_doubt', 'accepted')";

export function offerTable(db: Database.Database, prepared: Prepared) {
  const get = db.prepare<KeyColumns, OfferColumns>(`SELECT * FROM offers WHERE ${THIS_ATTEMPT}`);
  const open = db.prepare<RefColumns, OfferColumns>(`SELECT * FROM offers WHERE ${THIS_CASE} AND ${IS_OPEN}`);
  const ofCase = db.prepare<RefColumns, OfferColumns>(
    `SELECT * FROM offers WHERE ${THIS_CASE} ORDER BY rowid`,
  );
  const doubtful = db.prepare<[string], OfferColumns>(
    `SELECT * FROM offers o WHERE tenant = ? AND ${IS_OPEN} AND state = 'in_doubt' AND NOT EXISTS (SELECT 1 FROM quarantines q
       WHERE q.tenant = o.tenant AND q.root = o.root AND q.case_id = o.case_id) ORDER BY rowid`,
  );
  const last = db.prepare<object, number>(
    `SELECT coalesce(max(attempt), 0) FROM offers WHERE tenant = @tenant AND root = @root
       AND sender = @sender AND handoff_id = @handoff_id`,
  );
  last.pluck();
  const add = db.prepare<object>(insertInto('offers', OFFER_COLUMNS, true));
  const set = db.prepare<object>(
    `UPDATE offers SET state = @state, code = @code, closed_at = @closed_at, receipt = @receipt,
       receipt_key = @receipt_key WHERE ${THIS_ATTEMPT} AND state = @from`,
  );
  const one = (row: OfferColumns | undefined): StoredOffer | null =>
    row === undefined ? null : toOffer(row);
  return {
    get: (key: AcceptanceKey): StoredOffer | null => one(get.get(ofKey(key))),
    open: (ref: CaseRef): StoredOffer | null => one(open.get(ofRef(ref))),
    ofCase: (ref: CaseRef): OfferRow[] => ofCase.all(ofRef(ref)).map((row) => offerRow(toOffer(row))),
    doubtful: (tenant: string): OfferRow[] => doubtful.all(tenant).map((row) => offerRow(toOffer(row))),
    lastAttempt: (key: HandoffKey): number =>
      last.get({ tenant: key.tenant, root: key.root, sender: key.sender, handoff_id: key.handoffId }) ?? 0,
    list(tenant: string, { from, to, caseId, open: isOpen, holds, limit }: OfferFilter): OfferRow[] {
      const given = { sender: from, to_agent: to, case_id: caseId };
      const state = isOpen === undefined ? '' : isOpen ? ` AND ${IS_OPEN}` : ` AND NOT ${IS_OPEN}`;
      const held = holds === undefined ? '' : ' AND instr(message, @holds) > 0';
      const sql = `SELECT * FROM offers WHERE tenant = @tenant${whereGiven(given)}${state}${held}
        ORDER BY rowid DESC LIMIT @limit`;
      return prepared
        .all<OfferColumns>(sql, { tenant, ...given, holds, limit: limit ?? -1 })
        .map((row) => offerRow(toOffer(row)));
    },
    free({ tenant, agent, key, limit }: OfferClaim, now: string): StoredOffer[] {
      const given = { sender: agent, root: key?.root, handoff_id: key?.handoffId, attempt: key?.attempt };
      const sql = `SELECT * FROM offers o WHERE tenant = @tenant${whereGiven(given)} AND ${IS_UNFINISHED}
        AND ${isFree('offer', CLAIM_ID)} ORDER BY rowid LIMIT @limit`;
      return prepared.all<OfferColumns>(sql, { tenant, ...given, now, limit }).map(toOffer);
    },
    add: (guard: Guard, row: StoredOffer): void =>
      exactlyOne(add.run({ ...ofOffer(row), ...ofGuard(guard) })),
    set: (from: OfferRow['state'], row: OfferRow): void =>
      exactlyOne(
        set.run({
          ...ofKey(row.key),
          from,
          state: row.state,
          code: row.code,
          closed_at: row.closedAt,
          receipt: row.receipt,
          receipt_key: row.receiptKey,
        }),
      ),
  };
}
