export { openEvidenceFiles } from './files/evidence-files.js';
export { createMemoryLedger } from './memory/index.js';
export { openPostgresLedger, type PostgresLedgerOptions, type TimelineInfo } from './postgres/index.js';
export { openSqliteLedger } from './sqlite/index.js';
