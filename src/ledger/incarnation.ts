import type { Resolution } from './commands.js';
import type { Transfer } from './model.js';

/**
 * One life of an agent on its ledger. A start of the agent begins a new one, unless another of its processes lives: a ledger that was put
 * back to an earlier state, whatever was put back with it, cannot pass for the one that its peers last spoke with.
 */
export interface Incarnation {
  /** URL of the agent. */
  readonly agent: string;
  readonly incarnation: string;
  /** UTC; of two incarnations of one agent the one with the later time counts. */
  readonly since: string;
  /** The processes that have worked under it. */
  readonly holders: readonly string[];
  /** Goes up by one with each change of the row. */
  readonly rev: number;
}

/** A peer that cases of a `separate` kind can have gone to or come from, and whether it has said what it holds of them. */
export interface AwaitedPeer {
  readonly agent: string;
  readonly peer: string;
  readonly incarnation: string;
  /** `name/version` of the contracts that may pass between the two. */
  readonly contracts: readonly string[];
  /** `waived`: a person says that it will never answer this incarnation. */
  readonly state: 'waiting' | 'answered' | 'waived';
  /** UTC, of the state. */
  readonly since: string;
  /** The person who waived it, and why. */
  readonly by: string | null;
  readonly reason: string | null;
}

/** What a peer has said of its own ledger. */
export interface HeardIncarnation {
  readonly tenant: string;
  /** URL of the agent that was told. */
  readonly agent: string;
  readonly peer: string;
  readonly incarnation: string;
  readonly since: string;
  /** `attemptName` of each offer to the agent that it made under an earlier incarnation, and still holds open. */
  readonly open: readonly string[];
  readonly rev: number;
}

export interface BeginIncarnationCommand {
  readonly agent: string;
  /** The process; it has a lease. */
  readonly holder: string;
  /** Taken where a new one begins. */
  readonly incarnation: string;
  readonly peers: readonly Pick<AwaitedPeer, 'peer' | 'contracts'>[];
  /** Other processes of the agent that surely live: a lease alone may have been put back with the ledger. */
  readonly living: readonly string[];
}

export interface PeerAnsweredCommand {
  readonly agent: string;
  readonly peer: string;
  readonly incarnation: string;
}

export interface WaivePeerCommand {
  readonly agent: string;
  readonly peer: string;
  readonly resolution: Resolution;
}

export type HearIncarnationCommand = Omit<HeardIncarnation, 'rev'>;

export interface SettleReceiptCommand {
  /** The agent that asked. */
  readonly agent: string;
  /** The peer that handed the receipt over. */
  readonly by: string;
  /** As the verified receipt says. */
  readonly transfer: Transfer;
  /** `name/version` of the contracts that may pass between the agent and the one who accepted; any where absent. */
  readonly contracts?: readonly string[];
  /** Whether a person has judged what the receipt says, in a recovery of the case. */
  readonly judged?: boolean;
}

/**
 * What a receipt that a peer held came to. `foreign`: it is about a case that no other ledger can move. `passed`: the ledger is beyond it, by an import or a recovery. `quarantined`: the ledger
 * contradicts it, or does not know what its own agent has signed.
 */
export type ReceiptOutcome = 'foreign' | 'known' | 'released' | 'learned' | 'passed' | 'quarantined';

/** A page of the receipts that name an agent as one of their two parties. */
export interface ReceiptPage {
  readonly receipts: readonly string[];
  /** Where the next page begins; `null` where there is none. */
  readonly next: string | null;
}
