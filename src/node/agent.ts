import type { Contract } from '../contract/index.js';
import { type AcceptanceKey, type CaseRef, HoldfastError, normalizeAgentUrl } from '../core/index.js';
import type { EvidenceStore } from '../evidence/index.js';
import {
  type EffectInput,
  type HandOffInput,
  type HandoffHandler,
  runEffect,
  type Sender,
  statusPointer,
  storedResult,
} from '../handoff/index.js';
import type { LedgerStore } from '../ledger/index.js';
import type { NodeIdentity } from '../trust/index.js';
import { kindsOf } from './config.js';
import type { Config } from './config-schema.js';
import type { CaseWrite, EvidenceInput, Holdfast, OpenCaseInput } from './holdfast.js';
import { putKinds } from './kinds.js';
import type { ContractBook } from './received.js';
import type { Service } from './service.js';

export interface AgentParts {
  readonly config: Config;
  readonly identity: NodeIdentity;
  readonly ledger: LedgerStore;
  readonly evidence: EvidenceStore;
  readonly contracts: ContractBook;
  readonly sender: Sender;
  readonly service: Service;
  /** Ends what this agent holds besides the ledger. */
  release(): Promise<void>;
}

/** The agent as its user sees it: each method is one use case, written as this agent and never as another. */
export function createAgent(parts: AgentParts): Holdfast {
  const { config, identity, ledger, evidence, contracts, sender, service } = parts;
  const self = identity.url;
  const tenant = config.tenant;
  const asOwner = <T extends CaseWrite>(write: T) => ({ ...write, writer: self });
  const applyKinds = (options: { replace?: boolean } = {}) =>
    putKinds(ledger, tenant, kindsOf(config), options);
  let closing: Promise<void> | null = null;

  const agent: Holdfast = {
    url: self,
    identity,
    config,
    ledger,
    evidence,
    applyKinds,

    caseRef: (caseId: string, root = self): CaseRef => ({ tenant, root: normalizeAgentUrl(root), caseId }),
    async openCase({ caseId, kind, owner = self, epoch = 1, importedFrom }: OpenCaseInput) {
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
    closeCase: (write) => ledger.closeCase(asOwner(write)),
    note: (write) => ledger.addNote(asOwner(write)),
    effect: <T>(input: EffectInput<T>) => runEffect(ledger, self, input),
    startEffect: ({ amount = null, ...write }) => ledger.startEffect({ ...asOwner(write), amount }),
    settleEffect: ({ outcome = null, ...write }) => ledger.settleEffect({ ...asOwner(write), outcome }),
    async settleWork({ workId, state, result }) {
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
    statusPointer: (ref) => statusPointer(ledger, self, ref),

    addEvidence: (content: Uint8Array | AsyncIterable<Uint8Array>, info: EvidenceInput) =>
      evidence.put(content instanceof Uint8Array ? once(content) : content, info, {
        maxBytes: config.limits.max_evidence,
      }),
    checkPeer: (url, contract) => sender.checkPeer(normalizeAgentUrl(url), contract),
    checkServing: () => service.checkServing(),
    handOff: (input: HandOffInput) => sender.handOff({ ...input, to: normalizeAgentUrl(input.to) }),
    resend: (key: AcceptanceKey) => sender.resend(key),
    voidOffer: (key: AcceptanceKey, reason: string) => sender.withdraw(key, reason),

    onHandoff(contract: string | Contract, handler: HandoffHandler) {
      if (service.started) throw new HoldfastError('usage', 'Handlers are registered before start.');
      contracts.handle(contract, handler);
    },
    async start(options = {}) {
      await applyKinds();
      return service.start({ ...config.listen, ...options }, agent);
    },
    close() {
      closing ??= service
        .stop()
        .finally(() => parts.release())
        .finally(() => ledger.close());
      return closing;
    },
  };
  return agent;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
