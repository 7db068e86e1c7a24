import type { AcceptanceKey, CaseRef } from '../core/index.js';
import {
  type AttentionItem,
  type AuditEntry,
  asOf,
  type CaseRow,
  type CaseSnapshot,
  type Change,
  type CommandOf,
  type DecisionRow,
  type EffectRow,
  type KindDefinition,
  type LedgerStore,
  type LedgerView,
  type NoteRow,
  type Notification,
  type NotificationEntry,
  type NotificationFilter,
  type OfferRow,
  type OfferStanding,
  type Quarantine,
  type ResultOf,
  type RuleName,
  type TaskFilter,
  type TaskRow,
  type TaskWatch,
  type Transfer,
  type WorkItem,
} from '../ledger/index.js';

import { doubtOf } from './doubts.js';

export type { NotificationFilter } from '../ledger/index.js';

export type CaseFilter = NonNullable<Parameters<LedgerStore['listCases']>[1]>;
export type OfferFilter = Parameters<LedgerStore['listOffers']>[1];
export type WorkFilter = Parameters<LedgerStore['listWork']>[1];

/** Every question of the port, by name, so that an engine may answer it elsewhere. */
export interface LedgerReads
  extends Pick<
    LedgerView,
    'kind' | 'case' | 'offer' | 'decision' | 'lastAttempt' | 'work' | 'task' | 'alive' | 'pushes'
  > {
  incarnation(): string;
  kinds(tenant: string): KindDefinition[];
  /** Newest first. */
  cases(tenant: string, filter: CaseFilter): CaseRow[];
  casesById(tenant: string, caseId: string): CaseRow[];
  snapshot(ref: CaseRef): CaseSnapshot;
  offerStanding(key: AcceptanceKey, ref: CaseRef, kind: string): OfferStanding;
  /** Newest first. */
  decisionsBy(ref: CaseRef, sender: string, limit: number): DecisionRow[];
  /** Newest first. */
  offers(tenant: string, filter: OfferFilter): OfferRow[];
  /** Oldest first: a queue. */
  workItems(tenant: string, filter: WorkFilter): WorkItem[];
  notes(ref: CaseRef): NoteRow[];
  /** By epoch. */
  transfers(ref: CaseRef): Transfer[];
  /** With their limits applied. */
  currentEffects(ref: CaseRef): EffectRow[];
  tasks(filter: TaskFilter): { tasks: TaskRow[]; total: number };
  audit(ref: CaseRef): AuditEntry[];
  auditedCases(tenant: string): CaseRef[];
  auditHead(ref: CaseRef): { readonly seq: number; readonly hash: string } | null;
  auditHash(ref: CaseRef, seq: number): string | null;
  /** Oldest first. */
  quarantines(tenant: string): Quarantine[];
  /** Oldest first. */
  attention(tenant: string, limit: number | undefined): AttentionItem[];
  /** Oldest first. */
  notifications(tenant: string, filter: NotificationFilter): NotificationEntry[];
  notification(tenant: string, pushId: string, seq: number): Notification | null;
  notificationCounts(tenant: string): { readonly waiting: number; readonly dead: number };
  /** Whose time is not over. */
  watch(watchId: string): TaskWatch | null;
  heard(watchId: string, notificationId: string): boolean;
}

/** What is asked of push configurations and their notifications. */
export type PushQueries = Pick<
  LedgerQueries,
  | 'pushes'
  | 'push'
  | 'waiting'
  | 'duePushes'
  | 'dead'
  | 'notifications'
  | 'notification'
  | 'notificationCounts'
>;

export type ReadName = keyof LedgerReads;

/** What a database that answers at once is asked: what the rules need, and the lists. */
export interface LedgerQueries
  extends LedgerView,
    Omit<LedgerReads, 'snapshot' | 'offerStanding' | 'currentEffects' | 'attention'> {
  offersOf(ref: CaseRef): OfferRow[];
  decisionsOf(ref: CaseRef): DecisionRow[];
  workOf(ref: CaseRef): WorkItem[];
  /** Effects that are `unknown`, or `started` past their limit; those that have been so the longest first. */
  unknownEffects(tenant: string, limit: number | undefined): EffectRow[];
  /** Offers `in_doubt`, of cases that are not quarantined. */
  doubtfulOffers(tenant: string): OfferRow[];
}

export function readsOf(ledger: LedgerQueries): LedgerReads {
  const currentEffects = (ref: CaseRef) => ledger.effects(ref).map((effect) => asOf(effect, ledger.now));
  return {
    ...ledger,
    currentEffects,
    offerStanding: (key, ref, kind) => ({
      incarnation: ledger.incarnation(),
      decision: ledger.decision(key),
      case: ledger.case(ref),
      kind: ledger.kind(ref.tenant, kind),
    }),
    attention: (tenant, limit) =>
      attentionOf(
        ledger.unknownEffects(tenant, limit),
        ledger.quarantines(tenant),
        ledger
          .doubtfulOffers(tenant)
          .map((offer) => doubtOf(offer, ledger.case(offer.ref), ledger.audit(offer.ref))),
        limit,
      ),
    snapshot: (ref) => ({
      case: ledger.case(ref),
      offers: ledger.offersOf(ref),
      decisions: ledger.decisionsOf(ref),
      work: ledger.workOf(ref),
      effects: currentEffects(ref),
      notes: ledger.notes(ref),
      transfers: ledger.transfers(ref),
      audit: ledger.audit(ref),
    }),
  };
}

/** Oldest first. */
export function attentionOf(
  effects: readonly EffectRow[],
  quarantines: readonly Quarantine[],
  doubts: readonly AttentionItem[],
  limit: number | undefined,
): AttentionItem[] {
  return [...effects.map(ofEffect), ...quarantines.map(ofQuarantine), ...doubts]
    .sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0))
    .slice(0, limit);
}

function ofEffect(effect: EffectRow): AttentionItem {
  const { ref, settledAt, limitAt, key, operation, amount, owner, epoch, startedAt } = effect;
  const data = { key, operation, amount, owner, epoch, startedAt };
  return { what: 'effect_unknown', ref, since: settledAt ?? limitAt, data };
}

function ofQuarantine({ ref, at, reason, witnessed, found }: Quarantine): AttentionItem {
  return { what: 'case_quarantined', ref, since: at, data: { reason, witnessed, found } };
}

/** Answers one named question. */
export function answer<Q extends ReadName>(
  reads: LedgerReads,
  name: Q,
  args: Parameters<LedgerReads[Q]>,
): ReturnType<LedgerReads[Q]> {
  const question = reads[name] as (...given: Parameters<LedgerReads[Q]>) => ReturnType<LedgerReads[Q]>;
  return question(...args);
}

/** How one database judges commands, each as a transaction, and answers questions. */
export interface Engine {
  /** All or nothing: the changes and the audit facts of the ruling commit before the promise resolves or the refusal is thrown. */
  write<N extends RuleName>(name: N, command: CommandOf<N>): Promise<ResultOf<N>>;
  /** One consistent state. */
  read<Q extends ReadName>(name: Q, ...args: Parameters<LedgerReads[Q]>): Promise<ReturnType<LedgerReads[Q]>>;
  close(): Promise<void>;
}

export type HandoffKey = Omit<AcceptanceKey, 'attempt'>;

/** How a database makes each sort of change. */
export type ChangeHandlers = {
  readonly [Do in Change['do']]: (change: Extract<Change, { readonly do: Do }>) => void;
};

export function carryOut(handlers: ChangeHandlers, change: Change): void {
  const handler = handlers[change.do] as (change: Change) => void;
  handler(change);
}
