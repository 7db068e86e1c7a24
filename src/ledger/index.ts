export type * from './model.js';
export { OPEN_OFFER_STATES } from './model.js';
export type * from './port.js';
