export { openEvidenceFiles } from './files/evidence-files.js';
