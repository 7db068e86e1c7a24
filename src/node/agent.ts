import type { Contract } from '../contract/index.js';
import { type AcceptanceKey, type CaseRef, HoldfastError, normalizeAgentUrl } from '../core/index.js';
import type { EvidenceStore } from '../evidence/index.js';
import {
  type Announcer,
  type CaseReader,
  checkArguments,
  type EffectInput,
  type HandOffInput,
  type HandoffHandler,
  type PendingDecisions,
  type People,
  type QueryInput,
  type QueryResult,
  revokeEvidence,
  runEffect,
  type Sender,
  statusPointer,
  storedResult,
} from '../handoff/index.js';
import type { LedgerStore } from '../ledger/index.js';
import type { NodeIdentity } from '../trust/index.js';
import { kindsOf } from './config.js';
import type { Config } from './config-schema.js';
import type {
  CaseWrite,
  CaseWriteBy,
  EvidenceInput,
  HandoffQuery,
  Holdfast,
  OpenCaseInput,
} from './holdfast.js';
import { putKinds } from './kinds.js';
import type { CaseReaders } from './readers.js';
import type { ContractBook } from './received.js';
import type { Service } from './service.js';
import type { NewsHandler, Watches } from './watches.js';

export interface AgentParts {
  readonly config: Config;
  readonly identity: NodeIdentity;
  readonly ledger: LedgerStore;
  readonly evidence: EvidenceStore;
  readonly contracts: ContractBook;
  readonly readers: CaseReaders;
  readonly sender: Sender;
  readonly people: People;
  readonly service: Service;
  readonly receiver: PendingDecisions;
  readonly announcer: Announcer;
  readonly watches: Watches;
  /** Asks a receiver. */
  query(input: QueryInput): Promise<QueryResult>;
  /** Compares the ledger with what was seen of it. */
  checkLedger(): Promise<void>;
  /** Ends what this agent holds besides the ledger. */
  release(): Promise<void>;
}

/** Notifications in one transaction. */
const RETRIED = 500;

/** The agent as its user sees it: each method is one use case, written as this agent or a person of its node, and never as another. */
export function createAgent(parts: AgentParts): Holdfast {
  const { config, identity, ledger, evidence, contracts, sender, people, service, receiver, watches } = parts;
  const self = identity.url;
  const tenant = config.tenant;
  const asAgent = <T extends CaseWrite>(write: T) => ({ ...write, writer: self });
  const asOwner = <T extends CaseWriteBy>({ person, ...write }: T) => ({
    ...write,
    writer: people.writerOf(person),
  });
  const applyKinds = (options: { replace?: boolean } = {}) =>
    putKinds(ledger, tenant, kindsOf(config), options);
  let closing: Promise<void> | null = null;

  /** Before it does what only one owner may do. A process that does not serve begins and asks as well. */
  async function ready(): Promise<void> {
    if (service.started) return parts.announcer.asked();
    await parts.announcer.begin();
    await parts.announcer.ask();
  }

  const agent: Holdfast = {
    url: self,
    identity,
    config,
    ledger,
    evidence,
    applyKinds,

    caseRef(caseId: string, root = self): CaseRef {
      checkArguments('caseRef', { caseId, root });
      return { tenant, root: normalizeAgentUrl(root), caseId };
    },
    async openCase(input: OpenCaseInput) {
      checkArguments('openCase', input);
      const { caseId, kind, owner = self, epoch = 1, importedFrom } = input;
      const configured = kindsOf(config).filter((one) => one.kind === kind);
      await putKinds(ledger, tenant, configured);
      return ledger.openCase({
        ref: agent.caseRef(caseId),
        kind,
        owner: normalizeAgentUrl(owner),
        epoch,
        ...(importedFrom === undefined ? {} : { importedFrom }),
        actor: self,
      });
    },
    async closeCase(write) {
      checkArguments('closeCase', write);
      await ready();
      return ledger.closeCase(asOwner(write));
    },
    async note(write) {
      checkArguments('note', write);
      return ledger.addNote(asOwner(write));
    },
    async effect<T>(input: EffectInput<T>) {
      await ready();
      return runEffect(ledger, self, input);
    },
    async startEffect(write) {
      checkArguments('startEffect', write);
      await ready();
      return ledger.startEffect({ ...asAgent(write), amount: write.amount ?? null });
    },
    async settleEffect(write) {
      checkArguments('settleEffect', write);
      return ledger.settleEffect({ ...asOwner(write), outcome: write.outcome ?? null });
    },
    async settleWork(work) {
      checkArguments('settleWork', work);
      const { workId, state, result } = work;
      const item = await ledger.getWork(tenant, workId);
      if (!item) throw new HoldfastError('work_unknown', `There is no work item ${workId} in this ledger.`);
      return ledger.settleWork({
        ref: item.ref,
        writer: self,
        epoch: item.epoch,
        workId,
        state,
        result: await storedResult(state, result, contracts.find(item.contract)),
      });
    },
    async statusPointer(ref) {
      checkArguments('statusPointer', ref);
      return statusPointer(ledger, self, ref);
    },

    async retryNotifications(which = {}) {
      checkArguments('retryNotifications', which);
      let retried = 0;
      for (let found = RETRIED; found === RETRIED; retried += found) {
        found = await ledger.retryNotifications({ tenant, agent: self, ...which, limit: RETRIED });
      }
      return retried;
    },

    async watchTask(task) {
      checkArguments('watchTask', task);
      const { watchId, until } = await watches.begin(task.peer, task.taskId);
      return { watchId, until };
    },
    async unwatchTask(watchId) {
      checkArguments('unwatchTask', { watchId });
      await watches.end(watchId);
    },
    onTaskNews(handler: NewsHandler) {
      checkArguments('onTaskNews', { handler });
      watches.handle(handler);
    },
    takeCase: (input) => people.take(input),
    reassignCase: (input) => people.reassign(input),
    returnCase: (input) => people.giveBack(input),
    escalate: (input) => people.escalate(input),
    recoverCase: (input) => people.recover(input),
    waivePeer: (input) => people.waive(input),
    resolveEffect: (input) => people.resolveEffect(input),
    settleDoubt: (input) => people.settleDoubt(input),

    quarantine: (row) => ledger.quarantine(row),

    async addEvidence(content: Uint8Array | AsyncIterable<Uint8Array>, info: EvidenceInput) {
      checkArguments('addEvidence', { content, info });
      const stream = content instanceof Uint8Array ? once(content) : content;
      return evidence.put(stream, info, { maxBytes: config.limits.max_evidence });
    },
    revokeEvidence: (input) => revokeEvidence(input, { self, tenant, ledger, store: evidence }),
    async checkPeer(url, contract) {
      checkArguments('checkPeer', { url, contract });
      return sender.checkPeer(normalizeAgentUrl(url), contract);
    },
    checkServing: () => service.checkServing(),
    async checkHandOff(input: HandOffInput) {
      const checked = addressed(input);
      await ready();
      return sender.checkHandOff(checked);
    },
    async handOff(input: HandOffInput) {
      const checked = addressed(input);
      await ready();
      return sender.handOff(checked);
    },
    async answerQuestion(input) {
      checkArguments('answerQuestion', input);
      return sender.answer(input);
    },
    async resend(key: AcceptanceKey) {
      checkArguments('resend', key);
      return sender.resend(key);
    },
    async voidOffer(key: AcceptanceKey, reason: string) {
      checkArguments('voidOffer', { key, reason });
      return sender.withdraw(key, reason);
    },

    async queryHandoff(query: HandoffQuery) {
      checkArguments('queryHandoff', query);
      const root = normalizeAgentUrl(query.root ?? self);
      return parts.query({ ...query, to: normalizeAgentUrl(query.to), root });
    },

    listPending: (filter) => receiver.listPending(tenant, filter),
    acceptPending: (input) => receiver.acceptPending(input),
    rejectPending: (input) => receiver.rejectPending(input),

    onHandoff(contract: string | Contract, handler: HandoffHandler) {
      checkArguments('onHandoff', { contract, handler });
      if (service.started) throw new HoldfastError('usage', 'Handlers are registered before start.');
      contracts.handle(contract, handler);
    },
    onCase(kind: string, reader: CaseReader) {
      checkArguments('onCase', { kind, reader });
      if (service.started) throw new HoldfastError('usage', 'Readers are registered before start.');
      if (parts.readers.has(kind))
        throw new HoldfastError('usage', `Cases of ${kind} have a reader already.`);
      parts.readers.set(kind, reader);
    },
    async start(options = {}) {
      // Before anything is written, and before anybody is told.
      await parts.checkLedger();
      await applyKinds();
      return service.start({ ...config.listen, ...options }, agent);
    },
    close() {
      closing ??= service
        .stop()
        .finally(() => parts.release())
        // What still waited for a peer has failed with its connection; only then is nothing left that reads the ledger.
        .finally(() => parts.announcer.stop())
        .finally(() => ledger.close());
      return closing;
    },
  };
  return agent;
}

/** @throws usage */
function addressed(input: HandOffInput): HandOffInput {
  checkArguments('handOff', input);
  const { to } = input;
  return { ...input, to: typeof to === 'string' ? normalizeAgentUrl(to) : to.map(normalizeAgentUrl) };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
