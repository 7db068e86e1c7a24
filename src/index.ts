/** Holdfast as a library: hands cases between A2A agents without dropping them and without doubling them. */
export type {
  AcceptanceCheck,
  Contract,
  ContractDefinition,
  FactRule,
  OfferView,
  Verdict,
  VerifiedEvidence,
} from './contract/index.js';
export { accept, clarify, decideLater, defineContract, refundDispute, reject } from './contract/index.js';
export type {
  AcceptanceKey,
  Actor,
  CaseRef,
  Clock,
  ErrorClass,
  ErrorCode,
  ErrorDetails,
  FieldError,
  Logger,
  Money,
  Retry,
} from './core/index.js';
export { ERROR_TABLE, HoldfastError, isHoldfastError } from './core/index.js';
export type {
  CaseFile,
  EnvelopeConstraints,
  Fact,
  HandoffEnvelope,
} from './envelope/index.js';
export { parseCaseFile, redactText } from './envelope/index.js';
export type { EvidenceArtifact, EvidenceReference, EvidenceStore } from './evidence/index.js';
export type { FenceToken, PostgresClient, Presentation, SqliteDatabase } from './fence/index.js';
export { present } from './fence/index.js';
export type {
  AcceptedWork,
  AcceptPendingInput,
  AnswerInput,
  CaseByPerson,
  CaseReader,
  CaseRecord,
  EffectInput,
  EffectResult,
  EscalateInput,
  HandOffInput,
  HandOffResult,
  HandoffHandler,
  PeerDecision,
  QueryResult,
  ReassignInput,
  RecoverCaseInput,
  RejectPendingInput,
  ResolutionInput,
  ResolveEffectInput,
  Revocation,
  RevokedOffer,
  RevokeInput,
  SettleDoubtInput,
  StatusPointer,
  TakeCaseInput,
} from './handoff/index.js';
export { EffectNotDone } from './handoff/index.js';
export type {
  AuditEntry,
  Candidate,
  CandidatePlan,
  CaseRow,
  CaseSnapshot,
  Clarification,
  DecisionRow,
  EffectRow,
  KindDefinition,
  NoteRow,
  Notification,
  NotificationEntry,
  NotificationFilter,
  OfferRow,
  PendingOffer,
  SentTask,
  WorkItem,
} from './ledger/index.js';
export type {
  CaseWrite,
  CaseWriteBy,
  Config,
  EvidenceInput,
  HandoffQuery,
  Holdfast,
  LedgerReader,
  NewsHandler,
  OpenCaseInput,
  OpenOptions,
  TaskNews,
} from './node/index.js';
export { openHoldfast } from './node/index.js';
