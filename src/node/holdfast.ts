import type { Contract } from '../contract/index.js';
import type { AcceptanceKey, CaseRef, Money } from '../core/index.js';
import type { EvidenceArtifact, EvidenceStore } from '../evidence/index.js';
import type {
  AcceptPendingInput,
  AnswerInput,
  CaseByPerson,
  CaseReader,
  EffectInput,
  EffectResult,
  EscalateInput,
  HandOffInput,
  HandOffResult,
  HandoffHandler,
  QueryResult,
  ReassignInput,
  RecoverCaseInput,
  RejectPendingInput,
  ResolveEffectInput,
  Revocation,
  RevokeInput,
  SettleDoubtInput,
  StatusPointer,
  TakeCaseInput,
  WaivePeerInput,
} from '../handoff/index.js';
import type {
  AwaitedPeer,
  CaseRow,
  DecisionRow,
  EffectRow,
  LedgerStore,
  NoteRow,
  OfferRow,
  PendingOffer,
  Quarantine,
  WorkItem,
} from '../ledger/index.js';
import type { NodeIdentity } from '../trust/index.js';
import type { Config } from './config-schema.js';
import type { NewsHandler } from './watches.js';

/** A case to be opened here, by its id; its root is this agent. */
export interface OpenCaseInput {
  readonly caseId: string;
  readonly kind: string;
  /** URL of the first owner; this agent where absent. */
  readonly owner?: string;
  /** 1 where absent; more when another system hands the case in at that epoch. */
  readonly epoch?: number;
  /** Where the case comes from, when it is handed in. */
  readonly importedFrom?: string;
}

/** What a receiver is asked about: one attempt of this agent, or all of them on a case. */
export type HandoffQuery = {
  /** URL of the receiver. */
  readonly to: string;
  /** URL of the node that opened the case; this agent where absent. */
  readonly root?: string;
} & ({ readonly handoffId: string; readonly attempt: number } | { readonly caseId: string });

/** Every write names the epoch under which its writer believes to own the case. */
export interface CaseWrite {
  readonly ref: CaseRef;
  readonly epoch: number;
}

/** A write by this agent, or by a person of its node who owns the case. */
export interface CaseWriteBy extends CaseWrite {
  /** The id of the person; where absent it is the agent that writes. */
  readonly person?: string;
}

/** What is stored as evidence, and how. */
export interface EvidenceInput {
  readonly filename: string;
  readonly mediaType: string;
  /** Adds a version to this artifact; a new artifact where absent. */
  readonly artifactId?: string;
}

/** The reading half of the ledger: writes go through the agent, which puts its own name on them. */
export type LedgerReader = Pick<
  LedgerStore,
  | 'incarnation'
  | 'getIncarnation'
  | 'listAwaited'
  | 'getKind'
  | 'listKinds'
  | 'getCase'
  | 'listCases'
  | 'findCases'
  | 'snapshot'
  | 'getOffer'
  | 'listOffers'
  | 'findDecision'
  | 'getPlan'
  | 'getSentTask'
  | 'listWork'
  | 'getWork'
  | 'listNotes'
  | 'listEffects'
  | 'getTask'
  | 'listTasks'
  | 'readAudit'
  | 'listAuditedCases'
  | 'auditHead'
  | 'auditHash'
  | 'listQuarantined'
  | 'listAttention'
  | 'listNotifications'
  | 'getNotification'
  | 'countNotifications'
>;

/** One agent with its ledger: hands cases over, receives them, and writes under the fence. */
export interface Holdfast {
  readonly url: string;
  readonly identity: NodeIdentity;
  readonly config: Config;
  readonly ledger: LedgerReader;
  readonly evidence: EvidenceStore;

  /** The case with this id in this agent's tenant; `root` is this agent where absent. */
  caseRef(caseId: string, root?: string): CaseRef;
  /** @throws case_exists, kind_unknown */
  openCase(input: OpenCaseInput): Promise<CaseRow>;
  /** @throws case_busy, epoch_stale, not_owner */
  closeCase(write: CaseWriteBy): Promise<CaseRow>;
  /** @throws epoch_stale, epoch_ahead, not_owner, case_unknown, case_closed */
  note(write: CaseWriteBy & { readonly text: string }): Promise<NoteRow>;
  /**
   * A person of this node takes a case over at epoch + 1: from this agent, from another person of the node, or, where this agent opened
   * it, from whoever owns it. An open offer is voided and open work superseded in the same transaction. In a kind of mode `separate` only
   * from this agent and its persons; an open offer is withdrawn first, and where its receiver does not answer, nothing happens unless
   * `force` is set.
   * @throws epoch_stale, not_owner, effect_in_flight, case_closed, personal_data, usage; withdraw_needed where the offer is in doubt;
   *   offer_decided where it was accepted
   */
  takeCase(input: TakeCaseInput): Promise<CaseRow>;
  /** The person who owns a case passes it to another of this node. @throws as `takeCase` */
  reassignCase(input: ReassignInput): Promise<CaseRow>;
  /** The person who owns a case gives it back to this agent. @throws as `takeCase` */
  returnCase(input: CaseByPerson): Promise<CaseRow>;
  /** Gives a case of this agent to a person, since an offer of it was rejected or is not decided; that is voided first. @throws as `takeCase`, offer_unknown, offer_decided */
  escalate(input: EscalateInput): Promise<CaseRow>;
  /**
   * Ends the quarantine of a case: it goes on one epoch above the highest that was seen, and the person owns it. What was done after the
   * state that the ledger holds, only they can know. @throws usage where it is not quarantined; not_owner, case_closed, effect_in_flight, personal_data
   */
  recoverCase(input: RecoverCaseInput): Promise<CaseRow>;
  /** Waits no longer for a peer that is gone for good, until the next start: what is done on its cases then names the person. @throws usage where nothing waits for it; personal_data */
  waivePeer(input: WaivePeerInput): Promise<AwaitedPeer>;
  /** Settles an `unknown` effect as a person found it, as the owner of the case. @throws effect_unknown, effect_settled, effect_in_flight, not_owner, personal_data */
  resolveEffect(input: ResolveEffectInput): Promise<EffectRow>;
  /**
   * Ends the doubt that a takeover by force has left: the person says how they found out that the receiver does not own the case and never
   * will. @throws offer_unknown, not_owner, usage, personal_data
   */
  settleDoubt(input: SettleDoubtInput): Promise<OfferRow>;
  /** Runs one side effect under the fence and the case's policy. */
  effect<T>(input: EffectInput<T>): Promise<EffectResult<T>>;
  /** Commits `started` for a call that is made elsewhere, and must be settled. */
  startEffect(
    write: CaseWrite & { readonly key: string; readonly operation: string; readonly amount?: Money },
  ): Promise<EffectRow>;
  /** Says what became of an effect. @throws effect_unknown, effect_settled, epoch_stale, not_owner */
  settleEffect(
    write: CaseWriteBy & {
      readonly key: string;
      readonly state: 'done' | 'failed' | 'unknown';
      readonly outcome?: string;
    },
  ): Promise<EffectRow>;
  /** Says what became of a work item; what is done has the output that its contract requires. @throws output_invalid, work_unknown, work_settled, epoch_stale, not_owner */
  settleWork(work: {
    readonly workId: string;
    readonly state: 'done' | 'failed';
    readonly result?: unknown;
  }): Promise<WorkItem>;
  /** All that this agent may tell a customer about a case it has handed over. @throws case_unknown */
  statusPointer(ref: CaseRef): Promise<StatusPointer>;
  /** Stores the kinds of the configuration in the ledger. @throws kind_conflict unless `replace` is set */
  applyKinds(options?: { replace?: boolean }): Promise<Record<string, 'created' | 'same' | 'replaced'>>;

  /** Push notifications that were given up wait again: one, or all of this agent, in its own tenant or the one named. Tells how many. */
  retryNotifications(which?: {
    readonly tenant?: string;
    readonly pushId?: string;
    readonly seq?: number;
  }): Promise<number>;

  /**
   * Asks a peer to tell of a task that this agent made there, for 30 days; {@link onTaskNews} hears of it. The id of the watch ends it.
   * @throws peer_unknown, not_found, peer_error, peer_unreachable, outcome_unknown
   */
  watchTask(task: {
    readonly peer: string;
    readonly taskId: string;
  }): Promise<{ watchId: string; until: string }>;
  /** Takes nothing more of a watch. */
  unwatchTask(watchId: string): Promise<void>;
  /** What this agent does when a watched task has changed: it is given the task as it was read at the peer. A handler that throws hears of it again. */
  onTaskNews(handler: NewsHandler): void;

  /** Closes a case to every write, since its ledger is proved older than what was seen of it. */
  quarantine(row: Omit<Quarantine, 'at'>): Promise<void>;

  /** Stores bytes as evidence. @throws evidence_too_large */
  addEvidence(
    content: Uint8Array | AsyncIterable<Uint8Array>,
    info: EvidenceInput,
  ): Promise<EvidenceArtifact>;
  /**
   * Serves and offers evidence no more, for good. An open offer that carries it is rejected `evidence_revoked`: at once where this ledger
   * decides it, otherwise when its receiver fetches it. What was accepted stays so, and the audit of the case says what was revoked.
   * @throws evidence_file_missing, personal_data, usage
   */
  revokeEvidence(input: RevokeInput): Promise<Revocation>;
  /** Whether a peer is who the configuration says and takes this contract. @throws peer_unknown, peer_unreachable, peer_key_mismatch, peer_incompatible, contract_missing */
  checkPeer(url: string, contract: string): Promise<void>;
  /** Whether a case could be offered like that, before evidence of it is stored; changes nothing. @throws as `handOff`, but for what only the whole envelope shows */
  checkHandOff(input: HandOffInput): Promise<void>;
  /** Whether this agent's own node answers, from which a receiver fetches evidence. @throws peer_unreachable */
  checkServing(): Promise<void>;
  /**
   * Offers a case to another agent and waits for its decision, or `queued`: only until the receiver has it. Of several agents, the next is
   * asked once an offer is closed without an acceptance. This agent stays the owner until an acceptance is verified.
   */
  handOff(input: HandOffInput): Promise<HandOffResult>;
  /**
   * Answers what the receiver of an open offer asks before it decides. The answer is stored, then sent, the same bytes every time.
   * @throws offer_unknown, offer_decided, question_unknown, answer_invalid, personal_data; duplicate_conflict where the question is answered otherwise
   */
  answerQuestion(input: AnswerInput): Promise<HandOffResult>;
  /** Delivers the identical bytes of an open offer again, or says how it was decided. @throws offer_unknown */
  resend(key: AcceptanceKey): Promise<HandOffResult>;
  /** Closes an open offer; a late arrival is then refused. Where a receiver with a ledger of its own does not answer, it stays `open`, in doubt. @throws offer_unknown */
  voidOffer(key: AcceptanceKey, reason: string): Promise<HandOffResult>;
  /**
   * Asks a receiver what it has decided about one of this agent's attempts, or about all on a case; `root` is this agent where absent.
   * Changes nothing. @throws peer_unknown, peer_unreachable, outcome_unknown, peer_error, receipt_invalid
   */
  queryHandoff(query: HandoffQuery): Promise<QueryResult>;

  /** Offers to this agent that are stored undecided, oldest first: being checked, asked about, or left for somebody to decide. */
  listPending(filter?: {
    readonly state?: 'deciding' | 'asked' | 'waiting';
    readonly limit?: number;
  }): Promise<PendingOffer[]>;
  /**
   * A person of this node accepts one of them, in place of the node's own check; all that the acceptance transaction compares holds as ever.
   * @throws offer_unknown, offer_decided, contract_refused, and what an offer can be rejected for; nothing is decided then
   */
  acceptPending(input: AcceptPendingInput): Promise<DecisionRow>;
  /** A person of this node rejects one of them. @throws offer_unknown, offer_decided, usage, personal_data */
  rejectPending(input: RejectPendingInput): Promise<DecisionRow>;

  /** What this agent does with handoffs under a contract; it then accepts them. Before {@link start}. @throws usage */
  onHandoff(contract: string | Contract, handler: HandoffHandler): void;
  /** How this agent reads a case of a kind where a thin contract leaves that to it; the same as `kinds.<name>.reader`. Before {@link start}. @throws usage */
  onCase(kind: string, reader: CaseReader): void;
  /** Listens, then finishes what a crash left open. @throws port_taken, kind_conflict, config_invalid, reader_missing */
  start(options?: { port?: number; host?: string }): Promise<{ url: string; host: string; port: number }>;
  /** Stops listening, waits for work under way and closes the ledger. */
  close(): Promise<void>;
}
