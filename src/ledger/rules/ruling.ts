import type { AcceptanceKey, CaseRef, HoldfastError } from '../../core/index.js';
import type { CandidatePlan, SentTask } from '../candidates.js';
import type { Claim } from '../commands.js';
import type { AwaitedPeer, HeardIncarnation, Incarnation } from '../incarnation.js';
import type {
  AuditFact,
  CaseRow,
  DecisionRow,
  EffectRow,
  KindDefinition,
  NoteRow,
  OfferRow,
  Quarantine,
  TaskRow,
  Transfer,
  WorkItem,
} from '../model.js';
import type { PendingClaim, PendingOffer } from '../pending.js';
import type { DeadFilter, Notification, PushClaim, PushConfig } from '../push.js';
import type { TaskWatch } from '../watch.js';

/** An offer with its place in the case's audit chain: order is decided by the ledger's sequence, never by clocks. */
export interface StoredOffer extends OfferRow {
  readonly intendedSeq: number;
}

/** An effect as stored, before its limit is applied. */
export type StoredEffect = EffectRow;

/** What the rules read. A storage answers from inside the transaction that will write. */
export interface LedgerView {
  /** The database's clock; one instant for the whole transaction. */
  readonly now: Date;
  kind(tenant: string, kind: string): KindDefinition | null;
  case(ref: CaseRef): CaseRow | null;
  /** The sequence number the case's next audit entry will get. */
  nextSeq(ref: CaseRef): number;
  offer(key: AcceptanceKey): StoredOffer | null;
  openOffer(ref: CaseRef): StoredOffer | null;
  decision(key: AcceptanceKey): DecisionRow | null;
  /** The highest attempt with an offer or a decision under this handoff id, or 0. */
  lastAttempt(key: Omit<AcceptanceKey, 'attempt'>): number;
  effects(ref: CaseRef): readonly StoredEffect[];
  openWork(ref: CaseRef): readonly WorkItem[];
  work(tenant: string, id: string): WorkItem | null;
  task(tenant: string, id: string): TaskRow | null;
  plan(ref: CaseRef): CandidatePlan | null;
  sentTask(key: AcceptanceKey): SentTask | null;
  quarantined(ref: CaseRef): boolean;
  offersOf(ref: CaseRef): readonly OfferRow[];
  /** By epoch. */
  transfers(ref: CaseRef): Transfer[];
  incarnationOf(agent: string): Incarnation | null;
  /** Of the agent's present incarnation, by peer. */
  awaited(agent: string): readonly AwaitedPeer[];
  /** Those of the agent's processes that have not run out. */
  leasesOf(agent: string): readonly Lease[];
  heardFrom(tenant: string, agent: string, peer: string): HeardIncarnation | null;
  /** Whether the process has a lease that has not run out. */
  alive(holder: string): boolean;
  /** What can be claimed: unfinished, of no quarantined case, and claimed by no living process. Oldest first. */
  freeOffers(claim: OfferClaim): readonly StoredOffer[];
  freeWork(claim: WorkClaim): readonly WorkItem[];
  pending(key: AcceptanceKey): PendingOffer | null;
  freePending(claim: PendingClaim): readonly PendingOffer[];
  /** Of one task. */
  pushes(tenant: string, taskId: string): readonly PushConfig[];
  push(tenant: string, pushId: string): PushConfig | null;
  /** The two oldest that wait. */
  waiting(tenant: string, pushId: string): readonly Notification[];
  /** With something to deliver now, and delivered by nobody who lives. Due the longest first. */
  duePushes(claim: PushClaim): readonly PushConfig[];
  /** Tried the longest ago first. */
  dead(filter: DeadFilter): readonly Notification[];
}

export type OfferClaim = Claim & { readonly key?: AcceptanceKey };
export type WorkClaim = Claim & { readonly workId?: string };

/** That a process lives, as it last said. */
export interface Lease {
  readonly holder: string;
  readonly until: string;
}

/** Whose an offer or work item is for now. `id` is `claimIdOf` an offer's key, or the work item's. */
export interface ClaimRow {
  readonly tenant: string;
  readonly what: 'offer' | 'work';
  readonly id: string;
  readonly holder: string;
}

/** Owner and epoch that the statement itself must find, so that nothing can come between a check and its write. */
export interface Guard {
  readonly ref: CaseRef;
  readonly owner: string;
  readonly epoch: number;
}

/** One row changed. A storage carries each out as one statement that also checks its guard and the state it leaves. */
export type Change =
  | { readonly do: 'put_kind'; readonly tenant: string; readonly kind: KindDefinition }
  | { readonly do: 'open_case'; readonly row: CaseRow }
  /** Owner and epoch are the guard's; `to` is the row afterwards. */
  | { readonly do: 'move_case'; readonly guard: Guard; readonly to: CaseRow }
  /** Some epochs are left out: the transfer, which is kept with it, begins above the guard's. */
  | {
      readonly do: 'leap_case';
      readonly guard: Guard;
      readonly to: CaseRow;
      readonly transfer: Transfer;
    }
  | { readonly do: 'close_case'; readonly guard: Guard; readonly closedAt: string }
  | { readonly do: 'add_offer'; readonly guard: Guard; readonly row: StoredOffer }
  | { readonly do: 'set_offer'; readonly from: OfferRow['state']; readonly row: OfferRow }
  | { readonly do: 'add_decision'; readonly row: DecisionRow }
  | { readonly do: 'add_transfer'; readonly row: Transfer }
  | { readonly do: 'add_work'; readonly guard: Guard; readonly row: WorkItem }
  | { readonly do: 'supersede_work'; readonly row: WorkItem }
  | { readonly do: 'settle_work'; readonly guard: Guard; readonly row: WorkItem }
  | { readonly do: 'add_note'; readonly guard: Guard; readonly row: NoteRow }
  /** The `row` is `started`; inherited, it is what another ledger says of it. */
  | {
      readonly do: 'start_effect';
      readonly guard: Guard;
      readonly again: boolean;
      readonly row: StoredEffect;
    }
  | { readonly do: 'settle_effect'; readonly guard: Guard; readonly row: StoredEffect }
  | { readonly do: 'add_task'; readonly row: TaskRow }
  /** `row.version` is the new one; the stored one must be one below. */
  | { readonly do: 'save_task'; readonly row: TaskRow }
  /** The same for the task of an offer. */
  | { readonly do: 'save_offer_task'; readonly row: TaskRow }
  | { readonly do: 'add_pending'; readonly row: PendingOffer }
  /** `row.rev` is the new one; the stored one must be one below. */
  | { readonly do: 'set_pending'; readonly row: PendingOffer }
  /** Leases that ran out before `now` go first, and their claims with them. */
  | { readonly do: 'keep_lease'; readonly holder: string; readonly until: string; readonly now: string }
  | { readonly do: 'end_lease'; readonly holder: string }
  | { readonly do: 'claim'; readonly row: ClaimRow }
  /** Only where it is this holder's. */
  | { readonly do: 'unclaim'; readonly row: ClaimRow }
  /** The one of the case, in the place of the one before. */
  | { readonly do: 'set_plan'; readonly row: CandidatePlan }
  | { readonly do: 'set_sent_task'; readonly row: SentTask }
  | { readonly do: 'quarantine'; readonly row: Quarantine }
  /** `row.rev` is the new one; the stored one must be one below, and 0 is none. */
  | { readonly do: 'set_incarnation'; readonly row: Incarnation }
  /** All of the agent. */
  | { readonly do: 'drop_awaited'; readonly agent: string }
  | { readonly do: 'set_awaited'; readonly row: AwaitedPeer }
  /** `row.rev` is the new one; the stored one must be one below, and 0 is none. */
  | { readonly do: 'set_heard'; readonly row: HeardIncarnation }
  /** Changes nothing: the peer's row must have this `rev` until all is committed. */
  | {
      readonly do: 'check_heard';
      readonly tenant: string;
      readonly agent: string;
      readonly peer: string;
      readonly rev: number;
    }
  | { readonly do: 'add_push'; readonly row: PushConfig }
  /** `row.rev` is the new one; the stored one must be one below. */
  | { readonly do: 'set_push'; readonly row: PushConfig }
  | { readonly do: 'remove_push'; readonly tenant: string; readonly pushId: string }
  /** One notification for each active configuration of the task, or only for this one. */
  | {
      readonly do: 'notify';
      readonly tenant: string;
      readonly taskId: string;
      readonly pushId: string | null;
      readonly seq: number;
      readonly body: string;
      readonly at: string;
    }
  | { readonly do: 'set_notification'; readonly row: Notification }
  | {
      readonly do: 'remove_notification';
      readonly tenant: string;
      readonly pushId: string;
      readonly seq: number;
    }
  /** All that wait for it. */
  | {
      readonly do: 'hear';
      readonly watchId: string;
      readonly notificationId: string;
      readonly at: string;
      /** More than that, and the oldest are forgotten. */
      readonly most: number;
    }
  | { readonly do: 'add_watch'; readonly row: TaskWatch }
  | { readonly do: 'remove_watch'; readonly tenant: string; readonly watchId: string }
  | { readonly do: 'prune_watches'; readonly tenant: string; readonly agent: string; readonly now: string }
  | {
      readonly do: 'bury_notifications';
      readonly tenant: string;
      readonly pushId: string;
      readonly reason: string;
      readonly at: string;
    }
  /** The epoch of the case goes up first: only where it has come to what was witnessed may the quarantine end. `from` is `null` where there is no case. */
  | {
      readonly do: 'lift_quarantine';
      readonly ref: CaseRef;
      readonly from: number | null;
      readonly epoch: number;
    };

/** Facts go to the chain of this case, in this order. */
export interface CaseFacts {
  readonly ref: CaseRef;
  readonly facts: readonly AuditFact[];
}

/**
 * What a rule says to a command. A storage carries out the changes, chains the facts and commits; then it returns the result,
 * or throws the refusal: a refused write leaves its audit entry and nothing else, or else, unaudited, the quarantine of its case.
 */
export type Ruling<T> =
  | { readonly changes: readonly Change[]; readonly audit: CaseFacts | null; readonly result: T }
  | {
      readonly changes: readonly Change[];
      readonly audit: CaseFacts | null;
      readonly refusal: HoldfastError;
    };

/** A rule is pure: the view and the command are all it knows. */
export type Rule<C, T> = (view: LedgerView, command: C) => Ruling<T>;
