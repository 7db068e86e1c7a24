import type { AcceptanceKey, CaseRef } from '../core/index.js';
import type {
  AuditEntry,
  CaseRow,
  Change,
  DecisionRow,
  KindDefinition,
  LedgerStore,
  LedgerView,
  NoteRow,
  OfferRow,
  Ruling,
  TaskFilter,
  TaskRow,
  WorkItem,
} from '../ledger/index.js';

export type CaseFilter = NonNullable<Parameters<LedgerStore['listCases']>[1]>;
export type OfferFilter = Parameters<LedgerStore['listOffers']>[1];
export type WorkFilter = Parameters<LedgerStore['listWork']>[1];

/** Everything that is read from a ledger: what the rules need, and the lists. */
export interface LedgerQueries extends LedgerView {
  incarnation(): string;
  kinds(tenant: string): KindDefinition[];
  /** Newest first. */
  cases(tenant: string, filter: CaseFilter): CaseRow[];
  casesById(tenant: string, caseId: string): CaseRow[];
  /** Newest first. */
  offers(tenant: string, filter: OfferFilter): OfferRow[];
  offersOf(ref: CaseRef): OfferRow[];
  decisionsOf(ref: CaseRef): DecisionRow[];
  /** Oldest first: a queue. */
  workItems(tenant: string, filter: WorkFilter): WorkItem[];
  workOf(ref: CaseRef): WorkItem[];
  notes(ref: CaseRef): NoteRow[];
  tasks(filter: TaskFilter): { tasks: TaskRow[]; total: number };
  audit(ref: CaseRef): AuditEntry[];
  auditedCases(tenant: string): CaseRef[];
}

/** How one database runs a rule as a transaction. */
export interface Engine {
  /** All or nothing: the changes and the audit facts of the ruling commit before the promise resolves or the refusal is thrown. */
  write<T>(rule: (view: LedgerView) => Ruling<T>): Promise<T>;
  /** One consistent state. */
  read<T>(query: (ledger: LedgerQueries) => T): Promise<T>;
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
