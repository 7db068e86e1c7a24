import type { AcceptanceKey, CaseRef } from '../core/index.js';
import type { Principal } from '../trust/index.js';
import type {
  AnswerQuestionCommand,
  CandidatePlan,
  NoteTaskCommand,
  SentTask,
  SetPlanCommand,
} from './candidates.js';
import type {
  AcceptCommand,
  AcceptResult,
  AddNoteCommand,
  ChangeOwnerCommand,
  Claim,
  Claimed,
  CloseOfferCommand,
  DecideResult,
  IntendOfferCommand,
  OpenCaseCommand,
  OwnerWrite,
  RecordReceiptCommand,
  RecordRevocationCommand,
  RecoverCaseCommand,
  RejectCommand,
  SettleDoubtCommand,
  SettleEffectCommand,
  SettleWorkCommand,
  StartEffectCommand,
  VoidOfferCommand,
  WithdrawCommand,
} from './commands.js';
import type {
  AwaitedPeer,
  BeginIncarnationCommand,
  HearIncarnationCommand,
  Incarnation,
  PeerAnsweredCommand,
  ReceiptOutcome,
  ReceiptPage,
  SettleReceiptCommand,
  WaivePeerCommand,
} from './incarnation.js';
import type {
  AttentionItem,
  AuditEntry,
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
  WorkState,
} from './model.js';
import type { PendingOffer, PendingStore } from './pending.js';
import type {
  AddPushCommand,
  Announcement,
  DeadFilter,
  DuePush,
  Notification,
  NotificationEntry,
  NotificationFilter,
  NotificationSettled,
  PushClaim,
  PushConfig,
  RemovePushCommand,
  SettleNotificationCommand,
} from './push.js';
import type { Lease } from './rules/ruling.js';
import type { AddWatchCommand, TaskWatch } from './watch.js';

export interface TaskFilter {
  readonly tenant: string;
  readonly peer: string;
  readonly contextId?: string;
  readonly state?: string;
  /** UTC; tasks whose status changed then or later. */
  readonly since?: string;
  readonly limit: number;
  /** Where the page before ended: statusAt and id of its last task. */
  readonly after?: { readonly statusAt: string; readonly id: string };
}

/** What an offer is judged by before it is decided, read in one transaction. */
export interface OfferStanding {
  readonly incarnation: string;
  readonly decision: DecisionRow | null;
  readonly pending: PendingOffer | null;
  readonly case: CaseRow | null;
  readonly kind: KindDefinition | null;
}

/** Everything the ledger holds on one case, read in one transaction. */
export interface CaseSnapshot {
  readonly case: CaseRow | null;
  readonly offers: readonly OfferRow[];
  readonly decisions: readonly DecisionRow[];
  /** Offers that were stored undecided; oldest first. */
  readonly pending: readonly PendingOffer[];
  readonly work: readonly WorkItem[];
  readonly effects: readonly EffectRow[];
  readonly notes: readonly NoteRow[];
  /** Of a `separate` kind; oldest first. */
  readonly transfers: readonly Transfer[];
  readonly plan: CandidatePlan | null;
  /** Of offers that were not decided at once. */
  readonly sentTasks: readonly SentTask[];
  readonly audit: readonly AuditEntry[];
}

/**
 * The storage port of the ledger. Each method is one transaction: what it changed and its audit entries commit together, before
 * the promise resolves. A write that the ledger refuses throws `HoldfastError` with the code named here, after the refusal has
 * itself been committed to the audit (`write_refused`). `busy` and `ledger_unavailable` can come from any method.
 *
 * Every write compares owner and epoch *inside the statement that writes*: an older epoch is `epoch_stale` whoever presents it,
 * the current epoch by anyone but the owner is `not_owner`, a newer one is `epoch_ahead`; no such case is `case_unknown`. A write to
 * a quarantined case is `case_quarantined`, and leaves nothing in the audit either.
 */
export interface LedgerStore extends PendingStore {
  /** Minted when the database was made; a restored copy gets another. */
  incarnation(): Promise<string>;

  /**
   * Stores a kind, or finds the same one.
   * @throws kind_conflict where the ledger holds another definition and `replace` is not set, or one of another mode
   */
  putKind(
    tenant: string,
    kind: KindDefinition,
    options?: { replace?: boolean },
  ): Promise<'created' | 'same' | 'replaced'>;
  getKind(tenant: string, kind: string): Promise<KindDefinition | null>;
  listKinds(tenant: string): Promise<KindDefinition[]>;

  /** @throws case_exists, kind_unknown */
  openCase(command: OpenCaseCommand): Promise<CaseRow>;
  /** Final. @throws case_busy while an offer or work item is open or an effect is `started` or `unknown`; case_closed */
  closeCase(command: OwnerWrite): Promise<CaseRow>;
  getCase(ref: CaseRef): Promise<CaseRow | null>;
  listCases(
    tenant: string,
    filter?: { status?: 'open' | 'closed'; owner?: string; limit?: number },
  ): Promise<CaseRow[]>;
  /** Cases with this id under any root, for a person who typed only the id. */
  findCases(tenant: string, caseId: string): Promise<CaseRow[]>;
  snapshot(ref: CaseRef): Promise<CaseSnapshot>;
  /**
   * Another owner at epoch + 1, at the epoch presented: open offer voided, open work items superseded, constraints, hops and limits as they
   * are, all in one transaction. A takeover is open to the node that acts for the owner and to the case's root; the others to the owner.
   * In a `separate` kind it is inside one node, by its proof, which is kept as a transfer, and nothing is voided: an offer that is open at this
   * epoch has to be closed first (`withdraw_needed`). With `force` one that is in doubt stays so, and the owner moves to epoch + 2.
   * @throws effect_in_flight, case_closed, not_owner; offer_open, unaudited, where another offer is open than the one named: look again
   */
  changeOwner(command: ChangeOwnerCommand): Promise<CaseRow>;

  /**
   * Commits the intent to hand over, with the bytes that will be sent.
   * @throws offer_open, effect_in_flight, case_closed; case_changed where the envelope was made from other effects than the case has; `attempt` must be one above the last of this handoff id, else offer_decided;
   * plan_ended where it is a step of a plan that does not stand there any more
   */
  intendOffer(command: IntendOfferCommand): Promise<OfferRow>;
  /** intended -> offered, before the bytes leave. Idempotent while open, in doubt too. @throws offer_unknown, offer_decided */
  markOffered(key: AcceptanceKey): Promise<OfferRow>;
  /**
   * `separate` only: an open offer becomes `in_doubt`, because it was to be withdrawn and its receiver did not answer. It stays open; only
   * `releaseOffer` and `closeOffer` end that. Idempotent while open. @throws offer_unknown, offer_decided
   */
  markInDoubt(key: AcceptanceKey): Promise<OfferRow>;
  getOffer(key: AcceptanceKey): Promise<OfferRow | null>;
  listOffers(
    tenant: string,
    filter: {
      from?: string;
      to?: string;
      caseId?: string;
      open?: boolean;
      /** Only those whose message holds this text. */
      holds?: string;
      limit?: number;
    },
  ): Promise<OfferRow[]>;
  /** The last attempt under this handoff id by this sender, or 0. */
  lastAttempt(key: Omit<AcceptanceKey, 'attempt'>): Promise<number>;
  /**
   * `shared` only: closes an open offer by inserting its decision (a tombstone). Where it is decided already, that decision is returned
   * and nothing changes. @throws offer_unknown, not_owner; withdraw_needed in a `separate` kind
   */
  voidOffer(command: VoidOfferCommand): Promise<DecideResult>;
  /**
   * Evidence that the offer carries was revoked: an open one of a `shared` kind is rejected with that decision, an accepted one, and one that
   * another ledger decides, has it told in the audit; a closed one stays as it is. @throws offer_unknown, usage
   */
  recordRevocation(command: RecordRevocationCommand): Promise<OfferRow>;
  /** `shared`: keeps a verified receipt with the key that verified it. Idempotent. @throws offer_unknown; offer_decided where the ledger did not record an acceptance */
  recordReceipt(command: RecordReceiptCommand): Promise<OfferRow>;
  /**
   * `separate` only, the release: a verified receipt for an open offer of this ledger moves owner and epoch and closes the offer `accepted`
   * with its mirrored decision, and the case's open work items are `superseded`, in one transaction. Idempotent.
   * @throws offer_unknown; receipt_invalid where the receipt is for another case, digest, epoch or addressee than the offer;
   * case_quarantined where the offer is closed otherwise already: the case is quarantined by this call, for two parties may own it
   */
  releaseOffer(transfer: Transfer): Promise<OfferRow>;
  /**
   * `separate` only: closes an open offer by the receiver's stored rejection (`rejected`) or tombstone (`withdrawn` or `expired`), and
   * mirrors that decision. Whoever hands it in has it from the authenticated receiver, marked `final`. Idempotent.
   * @throws offer_unknown; offer_decided where it is closed otherwise; duplicate_conflict where other bytes were rejected
   */
  closeOffer(command: CloseOfferCommand): Promise<OfferRow>;
  /**
   * `separate` only: an offer that is in doubt since before a takeover by force is closed `withdrawn` by a person of the owner's node, who
   * says how they found out. @throws offer_unknown, not_owner; usage where no such takeover was
   */
  settleDoubt(command: SettleDoubtCommand): Promise<OfferRow>;
  /** Every proved change of owner that this ledger has applied or made by an acceptance, by epoch: the `provenance` of the next envelope. Empty in a `shared` kind. */
  listTransfers(ref: CaseRef): Promise<Transfer[]>;

  /** Whom the case goes to next, as it was stored: whether that still counts, case and offers say. */
  getPlan(ref: CaseRef): Promise<CandidatePlan | null>;
  /** Active ones of this sender, of no quarantined case, changed the longest ago first. */
  listPlans(tenant: string, sender: string, limit: number): Promise<CandidatePlan[]>;
  /** Passes candidates over, or ends the plan, where it is active and stands at `from`. Returns the plan as it is then. */
  setPlan(command: SetPlanCommand): Promise<CandidatePlan | null>;
  /** What the receiver's task of an open offer was read to be. Idempotent. @throws offer_unknown */
  noteTask(command: NoteTaskCommand): Promise<SentTask | null>;
  /**
   * Keeps the answer to a question of an open offer before it is sent. Idempotent.
   * @throws offer_unknown, offer_decided; question_unknown where another question is open, or none; duplicate_conflict where it has another answer
   */
  answerQuestion(command: AnswerQuestionCommand): Promise<SentTask>;
  getSentTask(key: AcceptanceKey): Promise<SentTask | null>;
  /** Those of a sender's offers whose task has this id, at whatever peer. */
  findSentTasks(tenant: string, sender: string, taskId: string): Promise<SentTask[]>;

  findDecision(key: AcceptanceKey): Promise<DecisionRow | null>;
  /** What was decided about this sender's attempts on the case, newest first. */
  listDecisions(ref: CaseRef, sender: string, limit: number): Promise<DecisionRow[]>;
  /** The decision or the undecided offer under the key, the case, and the kind that the envelope names, as they are now. */
  offerStanding(key: AcceptanceKey, ref: CaseRef, kind: string): Promise<OfferStanding>;
  /**
   * The acceptance transaction. Order of checks: decision under the key, case known and open, epoch, owner = principal, the open offer
   * of the case is this key and digest (none open: only where no offer row exists for the key), `acceptBy` by the database's clock,
   * effects (in flight: throws; started since the offer was intended: `case_changed`). Then, guarded: owner and epoch, decision and its
   * task, offer `accepted`, work item, older open work items of the case `superseded`, audit.
   *
   * In a `separate` kind, in the same transaction: a case that this ledger does not know is imported at the presented epoch, if its root is
   * the authenticated sender or the provenance is an unbroken chain from the root to the sender at that epoch (else `case_unknown`). On a
   * known case the provenance applies before owner and epoch are judged; where it accepts this ledger's own open offer, that is released.
   * All effects of the envelope are inherited: their keys are taken here, and their amounts count towards caps.
   * @throws effect_in_flight (nothing decided, the offer stays open); case_quarantined where the provenance proves that `toAgent` itself
   * took the case over, or handed it on, otherwise than this ledger knows: the case is quarantined by this call
   */
  accept(command: AcceptCommand): Promise<AcceptResult>;
  /** Stores a rejection and closes the ledger's offer under the same key and digest, if it is open. Never fails for want of a case. */
  reject(command: RejectCommand): Promise<DecideResult>;
  /**
   * Stores a tombstone under the key, so that whatever bytes arrive later are answered with it; nothing else need be known.
   * A decision that stands already is returned instead, and nothing changes; but where that is an acceptance, and `takeover` says that the
   * sender has owned the case since, the case is quarantined: two may own it.
   */
  withdraw(command: WithdrawCommand): Promise<Exclude<DecideResult, { outcome: 'conflict' }>>;
  /** Audits one more delivery of a decided offer, or a conflicting one. */
  recordDelivery(
    key: AcceptanceKey,
    ref: CaseRef,
    principal: Principal,
    digest: string,
    type: 'delivery_repeated' | 'delivery_conflict',
  ): Promise<void>;

  listWork(
    tenant: string,
    filter: { owner?: string; state?: WorkState; caseId?: string; limit?: number },
  ): Promise<WorkItem[]>;
  getWork(tenant: string, id: string): Promise<WorkItem | null>;
  /** open -> done | failed, by the owner. The same again is idempotent. @throws work_unknown, work_settled */
  settleWork(command: SettleWorkCommand): Promise<WorkItem>;

  addNote(command: AddNoteCommand): Promise<NoteRow>;
  listNotes(ref: CaseRef): Promise<NoteRow[]>;

  /**
   * Commits `started` before the outside call. A `failed` key may start again; an `unknown` or other one may not.
   * @throws effect_duplicate, cap_exceeded, operation_prohibited, operation_not_permitted, case_closed; effects_frozen while an offer of
   * a case of a `separate` kind is open, in doubt too: the receiver may have accepted
   */
  startEffect(command: StartEffectCommand): Promise<EffectRow>;
  /** A former owner's late settlement is kept as a report in the audit and refused. The same again is idempotent. @throws effect_unknown, effect_settled */
  settleEffect(command: SettleEffectCommand): Promise<EffectRow>;
  listEffects(ref: CaseRef): Promise<EffectRow[]>;

  /** With a notification to each that asked, if the change is an event. @throws task_conflict where the id exists */
  createTask(task: Omit<TaskRow, 'version'> & Announcement): Promise<TaskRow>;
  /** Compare and set on `version`, never on a task in a terminal state. @throws task_conflict, push_limit */
  saveTask(task: TaskRow & Announcement): Promise<TaskRow>;
  /** Another peer's task is `null`, like an unknown one. */
  getTask(tenant: string, peer: string, id: string): Promise<TaskRow | null>;
  /** Newest status first, then by id; `total` counts all that match. */
  listTasks(filter: TaskFilter): Promise<{ tasks: TaskRow[]; total: number }>;

  readAudit(ref: CaseRef): Promise<AuditEntry[]>;
  /** Every case that has an audit chain. */
  listAuditedCases(tenant: string): Promise<CaseRef[]>;

  /** The last entry of the case's chain; `null` where it has none. */
  auditHead(ref: CaseRef): Promise<{ readonly seq: number; readonly hash: string } | null>;
  auditHash(ref: CaseRef, seq: number): Promise<string | null>;

  /** Says that the process `holder` lives until `leaseMs` from now, by the database's clock. Its claims last as long; those of a lapsed lease are gone. */
  heartbeat(holder: string, leaseMs: number): Promise<void>;
  isAlive(holder: string): Promise<boolean>;
  /** Offers that `agent` sent (or only the one under `key`) and has to finish: open ones, and accepted ones whose receipt is not kept, oldest first, that no living process has claimed; they are the holder's now. Those the holder already has are not returned, nor any of a quarantined case; a holder without a lease gets none. */
  claimOffers(claim: Claim & { readonly key?: AcceptanceKey }): Promise<OfferRow[]>;
  /** Open work items that `agent` owns (or only `workId`), the same way. */
  claimWork(claim: Claim & { readonly workId?: string }): Promise<WorkItem[]>;
  /** Gives back one claim (an offer's key or a work item's id), or all of the holder and its lease. */
  release(holder: string, claimed?: Claimed): Promise<void>;

  /** Where a peer wants to hear of its task; one of the same `configId` is replaced. @throws not_found, push_limit */
  addPush(command: AddPushCommand): Promise<PushConfig>;
  /** Oldest first. */
  listPushes(tenant: string, taskId: string): Promise<PushConfig[]>;
  removePush(command: RemovePushCommand): Promise<void>;
  /** Configurations of the agent with a notification to deliver now, that no living process has; they are the holder's now. */
  claimPushes(claim: PushClaim): Promise<DuePush[]>;
  /** Says what came of a try. The holder keeps its claim only as long as there is a `next`. */
  settleNotification(command: SettleNotificationCommand): Promise<NotificationSettled>;
  /** Oldest first. */
  listNotifications(tenant: string, filter: NotificationFilter): Promise<NotificationEntry[]>;
  getNotification(tenant: string, pushId: string, seq: number): Promise<Notification | null>;
  countNotifications(tenant: string): Promise<{ readonly waiting: number; readonly dead: number }>;
  /** Dead ones wait again, as if they were new. Tells how many. */
  retryNotifications(filter: DeadFilter): Promise<number>;
  /** Dead ones are gone for good. Tells how many. */
  pruneNotifications(filter: DeadFilter): Promise<number>;

  addWatch(command: AddWatchCommand): Promise<TaskWatch>;
  /** `null` for an unknown one, and for one whose time is over. */
  getWatch(watchId: string): Promise<TaskWatch | null>;
  removeWatch(tenant: string, watchId: string): Promise<void>;
  /** Removes those of the agent whose time is over. */
  pruneWatches(tenant: string, agent: string): Promise<void>;
  /** Remembers that a notification was heard. Idempotent. */
  hear(watchId: string, notificationId: string): Promise<void>;
  isHeard(watchId: string, notificationId: string): Promise<boolean>;

  /**
   * A new life of the agent, unless another process of it works under the present one; `peers` are awaited from then on. Until they have
   * answered, its cases of `separate` kinds see no effect, offer or closing (`peers_unanswered`). @throws usage where the holder has no lease
   */
  beginIncarnation(
    command: BeginIncarnationCommand,
  ): Promise<{ readonly incarnation: string; readonly minted: boolean }>;
  /** `null` where no process of the agent has begun one. */
  getIncarnation(agent: string): Promise<Incarnation | null>;
  /** By peer. */
  listAwaited(agent: string): Promise<AwaitedPeer[]>;
  /** Of the agent's processes; those that have not run out. */
  listLeases(agent: string): Promise<Lease[]>;
  /** `null` where the agent has another incarnation by now. */
  peerAnswered(command: PeerAnsweredCommand): Promise<AwaitedPeer | null>;
  /** A person does not wait for a peer any longer, for this incarnation. @throws usage where nothing waits for it */
  waivePeer(command: WaivePeerCommand): Promise<AwaitedPeer>;
  /**
   * Keeps the incarnation of a peer's ledger, and which of its earlier offers to the agent it still holds; said again under one
   * incarnation, those are added. From then on no other earlier one is accepted. @throws incarnation_superseded
   */
  hearIncarnation(command: HearIncarnationCommand): Promise<void>;
  /** What this ledger holds on changes of owner in these tenants that `agent` was a party to. */
  listReceipts(
    agent: string,
    page: { readonly tenants: readonly string[]; readonly after: string | null; readonly limit: number },
  ): Promise<ReceiptPage>;
  /** Takes over what a peer held and this ledger may have lost. Idempotent. */
  settleReceipt(command: SettleReceiptCommand): Promise<ReceiptOutcome>;

  /** Closes the case to every write until a person acts. Idempotent: the first stays. */
  quarantine(row: Omit<Quarantine, 'at'>): Promise<void>;
  /**
   * Ends the quarantine: the case goes on one epoch above the highest that was seen, with the person as its owner, in one transaction. Open
   * to the node that acts for the owner and to the root. What is refused leaves nothing in the audit. @throws usage where it is not
   * quarantined, or the epoch is below the one witnessed; not_owner, kind_unknown, case_closed, effect_in_flight; epoch_stale or offer_open: look again
   */
  recoverCase(command: RecoverCaseCommand): Promise<CaseRow>;
  /** Oldest first. */
  listQuarantined(tenant: string): Promise<Quarantine[]>;
  /** What only a person can settle, oldest first: effects that are `unknown`, also by their limit, quarantined cases, open questions of receivers, and plans that nobody is left in. */
  listAttention(tenant: string, limit?: number): Promise<AttentionItem[]>;

  close(): Promise<void>;
}
