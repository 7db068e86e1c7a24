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
export {
  type BuildInput,
  type BuiltEnvelope,
  buildEnvelope,
  buildThinEnvelope,
  loggableOf,
  readdressEnvelope,
  type ThinInput,
} from './build.js';
export { type CaseFile, checkCaseFile, checkFacts, parseCaseFile } from './case-file.js';
export {
  type AnswerPart,
  buildAnswerMessage,
  buildQuestionMessage,
  parseAnswerPart,
  type QuestionPart,
  readAnswer,
  readQuestion,
} from './clarification.js';
export { renderJsonSchemas } from './json-schemas.js';
export type * from './model.js';
export { buildOfferMessage, readOffer, readOfferKey, readStoredEnvelope } from './offer.js';
export { findPersonalData, redactText } from './privacy.js';
export { redact, scanAnswer } from './redact.js';
export { createEnvelopeRegistry, type EnvelopeRegistry } from './registry.js';
export { summarize } from './summarize.js';
export { envelopeV2 } from './v2/index.js';
