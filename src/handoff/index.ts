export type { OfferReceiver, PeerClient } from './port.js';
