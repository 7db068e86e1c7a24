export {
  backupLedger,
  type Examination,
  examineLedger,
  type Finding,
  isHealthy,
  isPostgresUrl,
  type LedgerStatus,
  ledgerStatus,
  migrateLedger,
  openFences,
  redactUrl,
  restoreLedger,
} from '../storage/index.js';
export { checkConfig, parseConfig, readConfig } from './config.js';
export { addPeer, initAgent } from './config-edit.js';
export { listConfigKeys } from './config-explain.js';
export type { Config } from './config-schema.js';
export { type VerifiedConfig, verifyConfig } from './config-verify.js';
export type {
  CaseWrite,
  CaseWriteBy,
  EvidenceInput,
  HandoffQuery,
  Holdfast,
  LedgerReader,
  OpenCaseInput,
} from './holdfast.js';
export { loadIdentity } from './identity.js';
export { type LedgerPlace, ledgerPlace, namedPlace } from './ledger-place.js';
export { createLogger } from './logger.js';
export { nearestOf } from './nearest.js';
export {
  loadNodeKey,
  NEXT_KEY_FILE,
  NODE_KEY_FILE,
  prepareKey,
  RETIRED_KEYS_DIR,
  rotateKey,
} from './node-keys.js';
export { type OpenOptions, openHoldfast } from './open-holdfast.js';
export { EVIDENCE_SECRET_FILE, loadEvidenceSecret } from './secrets.js';
export { formatDuration, formatSize, parseDuration, parseSize } from './units.js';
export { VERSION } from './version.js';
export type { NewsHandler, TaskNews } from './watches.js';
export { acceptLedger, readWitness } from './witnessed-ledger.js';
