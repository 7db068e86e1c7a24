import { candidateSuite } from './suite/candidates.js';
import { caseSuite } from './suite/cases.js';
import { claimSuite } from './suite/claims.js';
import { decisionSuite } from './suite/decisions.js';
import { effectSuite } from './suite/effects.js';
import type { OpenLedger } from './suite/fixtures.js';
import { incarnationSuite } from './suite/incarnation.js';
import { offerSuite } from './suite/offers.js';
import { pendingSuite } from './suite/pending.js';
import { peopleSuite } from './suite/people.js';
import { proofSuite } from './suite/proofs.js';
import { pushSuite } from './suite/push.js';
import { quarantineSuite } from './suite/quarantine.js';
import { recoverySuite } from './suite/recovery.js';
import { revocationSuite } from './suite/revocations.js';
import { separateSuite } from './suite/separate.js';
import { takeoverSuite } from './suite/takeovers.js';
import { taskSuite } from './suite/tasks.js';
import { watchSuite } from './suite/watch.js';
import { withdrawalSuite } from './suite/withdrawals.js';

/** What every storage of the ledger must do, whatever it is made of. */
export function ledgerSuite(open: OpenLedger): void {
  caseSuite(open);
  offerSuite(open);
  decisionSuite(open);
  withdrawalSuite(open);
  effectSuite(open);
  taskSuite(open);
  claimSuite(open);
  pushSuite(open);
  watchSuite(open);
  candidateSuite(open);
  quarantineSuite(open);
  separateSuite(open);
  takeoverSuite(open);
  proofSuite(open);
  peopleSuite(open);
  recoverySuite(open);
  revocationSuite(open);
  pendingSuite(open);
  incarnationSuite(open);
}
