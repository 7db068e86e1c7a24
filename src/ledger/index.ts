export type * from './model.js';
export type * from './port.js';
export { asOf } from './rules/effects.js';
export { boundsOf } from './rules/facts.js';
export { type CommandOf, type Judge, judge, type ResultOf, type RuleName } from './rules/index.js';
export { isOpen, offerRow } from './rules/offers.js';
export { judgeOwnership } from './rules/ownership.js';
export type {
  CaseFacts,
  Change,
  Guard,
  LedgerView,
  Ruling,
  StoredEffect,
  StoredOffer,
} from './rules/ruling.js';
