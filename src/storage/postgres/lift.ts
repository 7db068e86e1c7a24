import { HoldfastError } from '../../core/index.js';
import type { Change } from '../../ledger/index.js';
import type { Session } from './connection.js';
import { caseOf, THIS_CASE } from './keys.js';

const RAISE = {
  name: 'raise',
  text: `UPDATE holdfast.cases SET epoch = $5 WHERE ${THIS_CASE} AND epoch = $4 AND status = 'open' RETURNING 1`,
};
const LIFT = { name: 'lift', text: `DELETE FROM holdfast.quarantines WHERE ${THIS_CASE} RETURNING 1` };

/**
 * Ends quarantines in the transaction that is open, before `holdfast.commit`, which writes to no quarantined case, makes the other changes
 * in it. Unless those are made too, the transaction must not commit. Returns whether there were any.
 */
export async function liftIn(session: Session, changes: readonly Change[]): Promise<boolean> {
  const lifts = changes.filter((change) => change.do === 'lift_quarantine');
  for (const { ref, from, epoch } of lifts) {
    if (from !== null && from !== epoch) onlyOne(await session.query(RAISE, [...caseOf(ref), from, epoch]));
    onlyOne(await session.query(LIFT, caseOf(ref)));
  }
  return lifts.length > 0;
}

/** Another transaction was faster: what is there now is to be judged anew. */
function onlyOne(rows: readonly object[]): void {
  if (rows.length !== 1) throw new HoldfastError('busy');
}
