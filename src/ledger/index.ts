export type * from './model.js';
export { OPEN_OFFER_STATES } from './model.js';
export type * from './port.js';
export { asOf } from './rules/effects.js';
export { boundsOf } from './rules/facts.js';
export { rules } from './rules/index.js';
export { offerRow } from './rules/offers.js';
export { judgeOwnership, type OwnershipRefusal } from './rules/ownership.js';
export type {
  CaseFacts,
  Change,
  Guard,
  LedgerView,
  Rule,
  Ruling,
  StoredEffect,
  StoredOffer,
} from './rules/ruling.js';
