import type Database from 'better-sqlite3';
import type { AcceptanceKey, CaseRef } from '../../core/index.js';
import type { DecisionRow } from '../../ledger/index.js';
import type { HandoffKey } from '../engine.js';
import { DECISION_COLUMNS, type DecisionColumns, ofDecision, toDecision } from '../rows/decisions.js';
import { type KeyColumns, ofKey, ofRef, type RefColumns } from '../rows/keys.js';
import { exactlyOne } from './errors.js';
import { insertInto, THIS_ATTEMPT, THIS_CASE } from './keys.js';

export function decisionTable(db: Database.Database) {
  const get = db.prepare<KeyColumns, DecisionColumns>(`SELECT * FROM decisions WHERE ${THIS_ATTEMPT}`);
  const ofCase = db.prepare<RefColumns, DecisionColumns>(
    `SELECT * FROM decisions WHERE ${THIS_CASE} ORDER BY rowid`,
  );
  const by = db.prepare<RefColumns & { sender: string; most: number }, DecisionColumns>(
    `SELECT * FROM decisions WHERE ${THIS_CASE} AND sender = @sender ORDER BY rowid DESC LIMIT @most`,
  );
  const last = db.prepare<object, number>(
    `SELECT coalesce(max(attempt), 0) FROM decisions WHERE tenant = @tenant AND root = @root
       AND sender = @sender AND handoff_id = @handoff_id`,
  );
  last.pluck();
  const add = db.prepare<DecisionColumns>(insertInto('decisions', DECISION_COLUMNS));
  return {
    get(key: AcceptanceKey): DecisionRow | null {
      const row = get.get(ofKey(key));
      return row === undefined ? null : toDecision(row);
    },
    by: (ref: CaseRef, sender: string, most: number): DecisionRow[] =>
      by.all({ ...ofRef(ref), sender, most }).map(toDecision),
    ofCase: (ref: CaseRef): DecisionRow[] => ofCase.all(ofRef(ref)).map(toDecision),
    lastAttempt: (key: HandoffKey): number =>
      last.get({ tenant: key.tenant, root: key.root, sender: key.sender, handoff_id: key.handoffId }) ?? 0,
    add: (row: DecisionRow): void => exactlyOne(add.run(ofDecision(row))),
  };
}
