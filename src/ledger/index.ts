export type * from './candidates.js';
export type * from './commands.js';
export type * from './incarnation.js';
export type * from './model.js';
export type * from './pending.js';
export type * from './port.js';
export type * from './push.js';
export { asOf } from './rules/effects.js';
export { boundsOf, loggableId } from './rules/facts.js';
export { attemptName } from './rules/incarnation.js';
export { type CommandOf, type Judge, judge, type ResultOf, type RuleName } from './rules/index.js';
export { claimIdOf, isOpen, isUnfinished, offerRow } from './rules/offers.js';
export { judgeOwnership } from './rules/ownership.js';
export { narrow } from './rules/policy.js';
export type {
  CaseFacts,
  Change,
  ClaimRow,
  Guard,
  Lease,
  LedgerView,
  OfferClaim,
  Ruling,
  StoredEffect,
  StoredOffer,
  WorkClaim,
} from './rules/ruling.js';
export { beginsAt, chainTo, isInside } from './rules/transfers.js';
export type * from './watch.js';
