import type Database from 'better-sqlite3';
import { type AcceptanceKey, type CaseRef, toUtc } from '../../core/index.js';
import type { PendingClaim, PendingFilter, PendingOffer } from '../../ledger/index.js';
import { patienceEnds } from '../attention.js';
import { type KeyColumns, ofKey, ofRef, type RefColumns } from '../rows/keys.js';
import { isAwaited, ofPending, PENDING_COLUMNS, type PendingColumns, toPending } from '../rows/pending.js';
import { exactlyOne } from './errors.js';
import { insertInto, THIS_ATTEMPT, THIS_CASE, whereGiven } from './keys.js';
import type { Prepared } from './prepared.js';

export function pendingTable(db: Database.Database, prepared: Prepared) {
  const get = db.prepare<KeyColumns, PendingColumns>(`SELECT * FROM pending WHERE ${THIS_ATTEMPT}`);
  const ofTask = db.prepare<[string, string], PendingColumns>(
    'SELECT * FROM pending WHERE tenant = ? AND task_id = ?',
  );
  const ofCase = db.prepare<RefColumns, PendingColumns>(
    `SELECT * FROM pending WHERE ${THIS_CASE} ORDER BY rowid`,
  );
  const awaited = db.prepare<[string, string, string, number], PendingColumns>(
    `SELECT * FROM pending o WHERE tenant = ? AND ${isAwaited('?', '?')} AND NOT EXISTS (SELECT 1 FROM quarantines q
       WHERE q.tenant = o.tenant AND q.root = o.root AND q.case_id = o.case_id) ORDER BY received_at, rowid LIMIT ?`,
  );
  const add = db.prepare<PendingColumns>(insertInto('pending', PENDING_COLUMNS));
  const set = db.prepare<PendingColumns>(
    `UPDATE pending SET state = @state, message = @message, clarifications = @clarifications, holder = @holder, rev = @rev
     WHERE ${THIS_ATTEMPT} AND rev = @rev - 1`,
  );
  const one = (row: PendingColumns | undefined) => (row === undefined ? null : toPending(row));
  return {
    get: (key: AcceptanceKey): PendingOffer | null => one(get.get(ofKey(key))),
    ofTask: (tenant: string, taskId: string): PendingOffer | null => one(ofTask.get(tenant, taskId)),
    ofCase: (ref: CaseRef): PendingOffer[] => ofCase.all(ofRef(ref)).map(toPending),
    list(tenant: string, { toAgent, state, limit }: PendingFilter): PendingOffer[] {
      const given = { to_agent: toAgent, state };
      const sql = `SELECT * FROM pending WHERE tenant = @tenant${whereGiven(given)} AND state <> 'decided'
        ORDER BY rowid LIMIT @limit`;
      return prepared.all<PendingColumns>(sql, { tenant, ...given, limit: limit ?? -1 }).map(toPending);
    },
    awaited: (tenant: string, now: Date, limit: number | undefined): PendingOffer[] =>
      awaited.all(tenant, toUtc(now), patienceEnds(now), limit ?? -1).map(toPending),
    free({ tenant, agent, key, limit }: PendingClaim, now: string): PendingOffer[] {
      const only = key === undefined ? '' : ` AND ${THIS_ATTEMPT}`;
      const sql = `SELECT * FROM pending o WHERE tenant = @tenant AND to_agent = @agent${only} AND state <> 'decided'
        AND (state = 'deciding' OR accept_by < @now)
        AND NOT EXISTS (SELECT 1 FROM holders h WHERE h.holder = o.holder AND h.until > @now)
        AND NOT EXISTS (SELECT 1 FROM quarantines q
          WHERE q.tenant = o.tenant AND q.root = o.root AND q.case_id = o.case_id)
        ORDER BY rowid LIMIT @limit`;
      const parameters = { ...(key === undefined ? {} : ofKey(key)), tenant, agent, now, limit };
      return prepared.all<PendingColumns>(sql, parameters).map(toPending);
    },
    add: (row: PendingOffer): void => exactlyOne(add.run(ofPending(row))),
    set: (row: PendingOffer): void => exactlyOne(set.run(ofPending(row))),
  };
}
