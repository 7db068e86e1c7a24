export { openEvidenceFiles } from './files/evidence-files.js';
export { createMemoryLedger } from './memory/index.js';
export { openSqliteLedger, type SqliteLedgerOptions } from './sqlite/index.js';
