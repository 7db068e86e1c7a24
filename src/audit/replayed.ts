import type { Money } from '../core/index.js';
import type {
  CaseRow,
  DecisionRow,
  EffectState,
  OfferState,
  PendingState,
  WorkState,
} from '../ledger/index.js';
import type { ReplayedPlan, ReplayedSentTask } from './candidates.js';

/** A case as its audit tells it: everything about it but the bytes, which stand there as digests. */
export interface ReplayedCase {
  readonly case: ReplayedOwnership | null;
  /** By `attemptId`. */
  readonly offers: ReadonlyMap<string, ReplayedOffer>;
  /** By `attemptId`. */
  readonly decisions: ReadonlyMap<string, ReplayedDecision>;
  /** Offers that were stored undecided, by `attemptId`. */
  readonly pending: ReadonlyMap<string, ReplayedPending>;
  readonly work: ReadonlyMap<string, ReplayedWork>;
  readonly effects: ReadonlyMap<string, ReplayedEffect>;
  readonly notes: ReadonlyMap<string, ReplayedNote>;
  /** By the epoch that they begin. */
  readonly transfers: ReadonlyMap<string, ReplayedTransfer>;
  readonly plan: ReplayedPlan | null;
  /** By `attemptId`. */
  readonly sentTasks: ReadonlyMap<string, ReplayedSentTask>;
}

export interface ReplayedOwnership {
  readonly kind: string;
  readonly status: CaseRow['status'];
  readonly owner: string;
  readonly epoch: number;
  readonly contract: string | null;
  readonly bounds: string;
}

export interface ReplayedOffer {
  readonly state: OfferState;
  readonly code: string | null;
  readonly digest: string;
  readonly toAgent: string;
  readonly epoch: number;
  /** Digest of the verified receipt. */
  readonly receipt: string | null;
}

export interface ReplayedDecision {
  readonly verdict: DecisionRow['verdict'];
  readonly code: string | null;
  readonly digest: string | null;
  readonly taskId: string | null;
  readonly epochBefore: number | null;
  readonly epochAfter: number | null;
  readonly answer: string;
}

export interface ReplayedPending {
  readonly state: PendingState;
  readonly digest: string;
  readonly toAgent: string;
  readonly contract: string;
  readonly taskId: string;
  /** Digests of the questions, by their number. */
  readonly questions: readonly string[];
  /** Digests of the answers. */
  readonly answers: readonly string[];
}

export interface ReplayedWork {
  readonly state: WorkState;
  readonly owner: string;
  readonly epoch: number;
  readonly envelope: string;
  readonly result: string | null;
}

export interface ReplayedEffect {
  readonly state: EffectState;
  readonly operation: string;
  readonly amount: Money | null;
  readonly owner: string;
  readonly epoch: number;
}

export interface ReplayedNote {
  readonly writer: string;
  readonly epoch: number;
  readonly digest: string;
}

export interface ReplayedTransfer {
  /** `attemptId` */
  readonly attempt: string;
  readonly toAgent: string;
  readonly digest: string;
  /** Digest of the receipt. */
  readonly receipt: string;
}
