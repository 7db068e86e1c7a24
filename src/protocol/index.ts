export { classifyMessage } from './classify.js';
export { controlMessage, parseControlAnswer, parseControlRequest } from './control.js';
export {
  type AnswerTo,
  type AttemptAnswer,
  type AttemptQuery,
  type CaseAnswer,
  type CaseQuery,
  CONTROL_LIMIT_MS,
  type ControlAnswer,
  type ControlDecision,
  type ControlRequest,
  type HeldOffer,
  type LedgerAnnouncement,
  type LedgerAnswer,
  MAX_CONTROL_DECISIONS,
  MAX_CONTROL_RECEIPTS,
  MAX_HELD_OFFERS,
  MAX_QUESTION_CHARS,
  type WithdrawRequest,
} from './control-documents.js';
export { bareMediaType, envelopeVersionOf } from './media-type.js';
export { parseMessage } from './message.js';
export {
  A2A_VERSION,
  AGENT_CARD_PATH,
  ANSWER_MEDIA_TYPE,
  CONTROL_MEDIA_TYPE,
  DEFAULT_VENDOR,
  ERROR_DOMAIN,
  EVIDENCE_PATH,
  EXTENSION_URI,
  envelopeMediaType,
  JSON_RPC_PATH,
  JWKS_PATH,
  QUESTION_MEDIA_TYPE,
  RECEIPT_MEDIA_TYPE,
  REJECTION_MEDIA_TYPE,
  REST_PATH,
  WATCH_PATH,
} from './names.js';
export { type Message, type Part, type Task, type TaskState, TERMINAL_TASK_STATES } from './wire.js';
