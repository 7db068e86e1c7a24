export {
  type ApprovalClaims,
  parseApprovalClaims,
  parseReceiptClaims,
  parseReceiptPart,
  parseRejectionPart,
  type ReceiptClaims,
  type ReceiptPart,
  type RejectionPart,
} from './answers.js';
export { type BuildInput, buildEnvelope, loggableOf } from './build.js';
export { type CaseFile, checkCaseFile, parseCaseFile } from './case-file.js';
export { renderJsonSchemas } from './json-schemas.js';
export type * from './model.js';
export { buildOfferMessage, readOffer, readOfferKey, readStoredEnvelope } from './offer.js';
export { findPersonalData, redactText } from './privacy.js';
export { redact } from './redact.js';
export { createEnvelopeRegistry, type EnvelopeRegistry } from './registry.js';
export { summarize } from './summarize.js';
export { envelopeV2 } from './v2/index.js';
