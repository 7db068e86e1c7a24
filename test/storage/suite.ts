import { decisionSuite } from './suite/decisions.js';
import type { OpenLedger } from './suite/fixtures.js';

/** What every storage of the ledger must do, whatever it is made of. */
export function ledgerSuite(open: OpenLedger): void {
  decisionSuite(open);
}
