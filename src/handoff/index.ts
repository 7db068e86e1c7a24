export { type Announcer, createAnnouncer } from './announce.js';
export { checkArguments } from './arguments.js';
export type { CaseReader, CaseRecord } from './case-reader.js';
export { createControl } from './control.js';
export { createDelivery, type Delivery } from './delivery.js';
export { EffectNotDone, runEffect } from './effects.js';
export { queryPeer } from './inquiry.js';
export { createLease, type Lease } from './lease.js';
export type {
  AcceptedWork,
  AcceptPendingInput,
  AnswerInput,
  CaseByPerson,
  EffectInput,
  EffectResult,
  EscalateInput,
  HandOffInput,
  HandOffResult,
  HandoffHandler,
  PeerDecision,
  QueryInput,
  QueryResult,
  ReassignInput,
  ReceivedContract,
  RecoverCaseInput,
  RejectPendingInput,
  ResolutionInput,
  ResolveEffectInput,
  SettleDoubtInput,
  StatusPointer,
  TakeCaseInput,
  WaivePeerInput,
} from './model.js';
export { createPeople, type People } from './people.js';
export type { ControlReceiver, OfferReceiver, PeerClient, PendingDecisions, Receiver } from './port.js';
export { verifyTransfer } from './provenance.js';
export { createReceiver } from './receiver.js';
export { storedResult } from './result.js';
export { type Revocation, type RevokedOffer, type RevokeInput, revokeEvidence } from './revocation.js';
export { createSender, type Sender } from './sender.js';
export { statusPointer } from './status.js';
export { createWorker, type Worker } from './worker.js';
