export { checkArguments } from './arguments.js';
export { createControl } from './control.js';
export { createDelivery, type Delivery } from './delivery.js';
export { EffectNotDone, runEffect } from './effects.js';
export { queryPeer } from './inquiry.js';
export { createLease, type Lease } from './lease.js';
export type {
  AcceptedWork,
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
  ResolutionInput,
  ResolveEffectInput,
  SettleDoubtInput,
  StatusPointer,
  TakeCaseInput,
} from './model.js';
export { createPeople } from './people.js';
export type { ControlReceiver, OfferReceiver, PeerClient } from './port.js';
export { verifyTransfer } from './provenance.js';
export { createReceiver } from './receiver.js';
export { storedResult } from './result.js';
export { createSender, type Sender } from './sender.js';
export { statusPointer } from './status.js';
export { createWorker, type Worker } from './worker.js';
