export { openEvidenceFiles } from './files/evidence-files.js';
export { openWitnessFiles, type Seen, type SeenLedger, type WitnessFiles } from './files/witness-files.js';
export { createMemoryLedger } from './memory/index.js';
export { openSqliteLedger } from './sqlite/index.js';
