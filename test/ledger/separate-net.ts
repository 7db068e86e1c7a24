import type { DecisionRow, HearIncarnationCommand, Transfer } from '../../src/ledger/index.js';
import type { Crossing } from '../storage/suite/parties.js';

/** What a node that is built wrongly does; each breaks what must always hold. */
export const MISTAKES = [
  'answers a rejection before it is stored',
  'goes on where the receiver has no record',
  'goes on when the deadline has passed',
  'leaves a tombstone that does not name the attempt',
  'starts effects while the outcome is in doubt',
  'inherits no effects',
  'answers an acceptance before it is stored',
  'takes a tombstone of one attempt for the next',
  'has two offers out at once',
  'takes a case over while its offer is open',
  'goes on with the epoch that it was put back to before its peers have answered',
] as const;
export type Mistake = (typeof MISTAKES)[number];

/** What one node says to another, and by which of its runs: an answer comes back to that one, or to nobody. */
export type Message =
  | { readonly say: 'offer' | 'withdraw' | 'query'; readonly crossing: Crossing; readonly run: number }
  | { readonly say: 'answer'; readonly crossing: Crossing; readonly run: number; readonly answer: Answer }
  | Announcement
  | Receipts;

export interface Announcement extends Pick<HearIncarnationCommand, 'incarnation' | 'since' | 'open'> {
  readonly say: 'announce';
  readonly by: string;
  readonly cursor: string | null;
}

/** A page of what a peer holds; `next` is the cursor of the one after it. */
export interface Receipts {
  readonly say: 'receipts';
  readonly by: string;
  readonly incarnation: string;
  readonly transfers: readonly Transfer[];
  readonly next: string | null;
}

/** `null`: no decision stands. */
export type Answer = Pick<DecisionRow, 'verdict' | 'code' | 'digest' | 'answer'> | null;

export interface Sent {
  readonly to: string;
  readonly message: Message;
}

/** What the business system saw: one start of one effect, and whether it came to something there. */
export interface Performed {
  readonly key: string;
  readonly by: string;
  readonly epoch: number;
  readonly happened: boolean;
}
