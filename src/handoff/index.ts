export { EffectNotDone, runEffect } from './effects.js';
export type {
  AcceptedWork,
  EffectInput,
  EffectResult,
  HandOffInput,
  HandOffResult,
  HandoffHandler,
  ReceivedContract,
  StatusPointer,
} from './model.js';
export type { OfferReceiver, PeerClient } from './port.js';
export { createReceiver, type ReceiverOptions } from './receiver.js';
export { createSender, type Sender, type SenderOptions } from './sender.js';
export { statusPointer } from './status.js';
export { createWorker, type Worker } from './worker.js';
