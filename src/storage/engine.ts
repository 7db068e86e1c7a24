import { type AcceptanceKey, type CaseRef, HoldfastError } from '../core/index.js';
import {
  type AttentionItem,
  type AuditEntry,
  type AwaitedPeer,
  asOf,
  type CandidatePlan,
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
  type PendingFilter,
  type PendingOffer,
  type Quarantine,
  type ReceiptPage,
  type ResultOf,
  type RuleName,
  type SentTask,
  type TaskFilter,
  type TaskRow,
  type TaskWatch,
  type Transfer,
  type WorkItem,
} from '../ledger/index.js';
import { attentionOf, patienceEnds } from './attention.js';
import { doubtOf } from './doubts.js';

export type { NotificationFilter } from '../ledger/index.js';

export type CaseFilter = NonNullable<Parameters<LedgerStore['listCases']>[1]>;
export type OfferFilter = Parameters<LedgerStore['listOffers']>[1];
export type WorkFilter = Parameters<LedgerStore['listWork']>[1];

/** Every question of the port, by name, so that an engine may answer it elsewhere. */
export interface LedgerReads
  extends Pick<
    LedgerView,
    | 'kind'
    | 'case'
    | 'offer'
    | 'decision'
    | 'pending'
    | 'lastAttempt'
    | 'work'
    | 'task'
    | 'alive'
    | 'pushes'
    | 'plan'
    | 'sentTask'
    | 'incarnationOf'
    | 'awaited'
    | 'leasesOf'
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
  pendingOf(tenant: string, taskId: string): PendingOffer | null;
  /** Undecided ones, oldest first. */
  pendings(tenant: string, filter: PendingFilter): PendingOffer[];
  /** Oldest first: a queue. */
  workItems(tenant: string, filter: WorkFilter): WorkItem[];
  notes(ref: CaseRef): NoteRow[];
  /** Active ones, of no quarantined case; changed the longest ago first. */
  plans(tenant: string, sender: string, limit: number): CandidatePlan[];
  sentTasksBy(tenant: string, sender: string, taskId: string): SentTask[];
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
  receipts(
    agent: string,
    page: {
      readonly tenants: readonly string[];
      readonly after: ReceiptPlace | null;
      readonly limit: number;
    },
  ): ReceiptPage;
}

/** Where a receipt stands among all. */
export type ReceiptPlace = readonly [tenant: string, root: string, caseId: string, newEpoch: number];

/** What is asked of incarnations: those of the agents here, and of their peers. */
export type IncarnationQueries = Pick<
  LedgerQueries,
  'incarnationOf' | 'awaited' | 'leasesOf' | 'heardFrom' | 'unansweredSince' | 'receipts'
>;

/** Of rows in their order, one more than the page holds if there are more. */
export function pageOf(rows: readonly Transfer[], limit: number): ReceiptPage {
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return {
    receipts: rows.slice(0, limit).map(({ receipt }) => receipt),
    next:
      last === undefined
        ? null
        : Buffer.from(
            JSON.stringify([last.ref.tenant, last.ref.root, last.ref.caseId, last.newEpoch]),
          ).toString('base64url'),
  };
}

/** @throws control_invalid where it is none that a page gave out */
export function placeOf(cursor: string): ReceiptPlace {
  try {
    const [tenant, root, caseId, epoch, ...more] = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    const texts = [tenant, root, caseId].every((part) => typeof part === 'string');
    if (texts && Number.isSafeInteger(epoch) && more.length === 0) return [tenant, root, caseId, epoch];
  } catch {
    // Not even JSON.
  }
  throw new HoldfastError('control_invalid', undefined, {
    fields: [{ path: 'cursor', problem: 'is none that was given out' }],
  });
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

/** What is asked of plans and of tasks at receivers. */
export type CandidateQueries = Pick<
  LedgerQueries,
  'plan' | 'plans' | 'sentTask' | 'sentTasksOf' | 'sentTasksBy' | 'openQuestions' | 'exhaustedPlans'
>;

/** What is asked of offers that were stored undecided. */
export type PendingQueries = Pick<
  LedgerQueries,
  'pending' | 'pendingOf' | 'pendings' | 'pendingOfCase' | 'freePending' | 'awaitedDecisions'
>;

export type ReadName = keyof LedgerReads;

/** What a database that answers at once is asked: what the rules need, and the lists. */
export interface LedgerQueries
  extends LedgerView,
    Omit<LedgerReads, 'snapshot' | 'offerStanding' | 'currentEffects' | 'attention'> {
  offersOf(ref: CaseRef): OfferRow[];
  decisionsOf(ref: CaseRef): DecisionRow[];
  pendingOfCase(ref: CaseRef): PendingOffer[];
  /** In time still, of no quarantined case: those that wait for somebody, or are being checked for long; the longest first. */
  awaitedDecisions(tenant: string, limit: number | undefined): PendingOffer[];
  workOf(ref: CaseRef): WorkItem[];
  /** Effects that are `unknown`, or `started` past their limit; those that have been so the longest first. */
  unknownEffects(tenant: string, limit: number | undefined): EffectRow[];
  sentTasksOf(ref: CaseRef): SentTask[];
  /** Of open offers, asked and not answered; the longest first. */
  openQuestions(tenant: string, limit: number | undefined): SentTask[];
  /** Of cases that are still where the plan left them; the longest first. */
  exhaustedPlans(tenant: string, limit: number | undefined): CandidatePlan[];
  /** Peers that are waited for since then, or longer. */
  unansweredSince(before: string): AwaitedPeer[];
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
      pending: ledger.pending(key),
      case: ledger.case(ref),
      kind: ledger.kind(ref.tenant, kind),
    }),
    attention: (tenant, limit) =>
      attentionOf(
        {
          effects: ledger.unknownEffects(tenant, limit),
          quarantines: ledger.quarantines(tenant),
          doubts: ledger
            .doubtfulOffers(tenant)
            .map((offer) => doubtOf(offer, ledger.case(offer.ref), ledger.audit(offer.ref))),
          questions: ledger.openQuestions(tenant, limit),
          plans: ledger.exhaustedPlans(tenant, limit),
          decisions: ledger.awaitedDecisions(tenant, limit),
          unanswered: ledger.unansweredSince(patienceEnds(ledger.now)),
        },
        limit,
      ),
    snapshot: (ref) => ({
      case: ledger.case(ref),
      offers: ledger.offersOf(ref),
      decisions: ledger.decisionsOf(ref),
      pending: ledger.pendingOfCase(ref),
      work: ledger.workOf(ref),
      effects: currentEffects(ref),
      notes: ledger.notes(ref),
      transfers: ledger.transfers(ref),
      plan: ledger.plan(ref),
      sentTasks: ledger.sentTasksOf(ref),
      audit: ledger.audit(ref),
    }),
  };
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
