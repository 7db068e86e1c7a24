import { refundDispute } from './contracts/refund-dispute.js';
import type { Contract } from './model.js';

export { type ContractSubject, checkAnswer, checkContract, checkOutput } from './check.js';
export { defineContract } from './define.js';
export type * from './model.js';
export { accept, clarify, decideLater, reject } from './verdict.js';
export { refundDispute };

/** What a node offers without a contract file of its own. */
export const BUILT_IN_CONTRACTS: readonly Contract[] = [refundDispute];
