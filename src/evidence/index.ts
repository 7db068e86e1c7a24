export { sanitizeFilename } from './filename.js';
export type * from './model.js';
export { checkReference, receiveEvidence } from './receive.js';
export { buildReference } from './reference.js';
export { DEFAULT_EVIDENCE_TTL_MS, signEvidenceUrl, verifyEvidenceUrl } from './signed-url.js';
