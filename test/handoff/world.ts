import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Contract, refundDispute } from '../../src/contract/index.js';
import { type CaseRef, DEFAULT_LIMITS, HoldfastError, silentLogger } from '../../src/core/index.js';
import { createEnvelopeRegistry, envelopeV2, parseCaseFile } from '../../src/envelope/index.js';
import { type EvidenceDownloader, type EvidenceStore, verifyEvidenceUrl } from '../../src/evidence/index.js';
import {
  type ControlReceiver,
  createControl,
  createDelivery,
  createLease,
  createReceiver,
  createSender,
  type HandOffInput,
  type HandoffHandler,
  type PeerClient,
  type Sender,
} from '../../src/handoff/index.js';
import type { KindDefinition, LedgerStore, OfferRow, WorkItem } from '../../src/ledger/index.js';
import {
  controlMessage,
  type Message,
  parseControlAnswer,
  parseMessage,
  type Task,
} from '../../src/protocol/index.js';
import { openEvidenceFiles, openSqliteLedger } from '../../src/storage/index.js';
import { buildAgentCard } from '../../src/transport/index.js';
import {
  createNodeIdentity,
  createPeerDirectory,
  generateNodeKey,
  type NodeIdentity,
  type PeerKeySource,
  type Principal,
} from '../../src/trust/index.js';
import { refundFacts } from '../refund-facts.js';

export const TRIAGE = 'https://triage.example';
export const BILLING = 'https://billing.example';
export const MALLORY = 'https://mallory.example';

const envelopes = createEnvelopeRegistry([envelopeV2]);

const KIND: KindDefinition = {
  kind: 'refund-dispute',
  systemOfRecord: 'payments',
  mode: 'shared',
  contracts: [refundDispute.id],
  policy: {
    caps: { refund: { amount: '100.00', currency: 'EUR' } },
    prohibitions: ['publish'],
    operations: { '*': ['refund'] },
  },
  limits: { maxHops: 2, maxTasks: 5, acceptWithinMs: 3_600_000, effectLimitMs: 300_000 },
};

export function caseFileOf(caseId: string, change: Record<string, unknown> = {}) {
  const document = {
    case_id: caseId,
    kind: 'refund-dispute',
    goal: 'refund duplicate charge',
    done: ['account verified', 'duplicates found'],
    remaining: ['decide and issue refund'],
    facts: refundFacts(),
    constraints: {
      deadline: '2099-01-01T00:00:00Z',
      caps: { refund: { amount: '100.00', currency: 'EUR' } },
    },
    ...change,
  };
  return parseCaseFile(new TextEncoder().encode(JSON.stringify(document)), DEFAULT_LIMITS);
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

/** Two agents on one SQLite ledger. Only the network is missing: the client hands the message to the other agent's receiver. */
export interface World {
  readonly ledger: LedgerStore;
  readonly sender: Sender;
  /** Claims triage's open offers and goes on with them until they are decided; returns what became of them. */
  takeUp(stop?: AbortSignal): Promise<string[]>;
  readonly receiver: ReturnType<typeof createReceiver>;
  readonly control: ControlReceiver;
  principalOf(agent: string): Principal;
  readonly identities: { triage: NodeIdentity; billing: NodeIdentity };
  readonly evidence: { triage: EvidenceStore; billing: EvidenceStore; artifactId: string };
  /** URLs that billing asked for. */
  readonly downloads: string[];
  /** Messages that reached billing, in order. */
  readonly sent: string[];
  readonly accepted: WorkItem[];
  /** Runs instead of the delivery; call `deliver` to go on. */
  wire: { onSend: ((offer: Message, deliver: () => Promise<Task>) => Promise<Task>) | null };
  handler: { current: HandoffHandler };
  openCase(caseId: string, epoch?: number): Promise<CaseRef>;
  input(ref: CaseRef, change?: Partial<HandOffInput>): HandOffInput;
  /** Delivers raw message JSON to billing as this principal. */
  deliver(message: unknown, agent?: string): Promise<Task>;
  /** The last offer of a case and the message it holds. */
  lastOffer(caseId: string): Promise<OfferRow>;
  /** Moves the clock of agents and ledger. */
  advance(ms: number): void;
  close(): Promise<void>;
}

export async function createWorld(
  options: { contract?: Contract; retryDelaysMs?: number[] } = {},
): Promise<World> {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-handoff-'));
  let aheadMs = 0;
  const clock = { now: () => new Date(Date.now() + aheadMs) };
  const ledger = await openSqliteLedger({ file: join(dir, 'ledger.db'), clock });
  await ledger.putKind('default', KIND);
  const contract = options.contract ?? refundDispute;
  const identities = {
    triage: await createNodeIdentity({ url: TRIAGE, privateJwk: await generateNodeKey(), clock }),
    billing: await createNodeIdentity({ url: BILLING, privateJwk: await generateNodeKey(), clock }),
  };
  const keys: PeerKeySource = {
    keysOf: async (url) => (url === TRIAGE ? identities.triage : identities.billing).jwks().keys,
  };
  const allowed = { tenant: 'default', contracts: [contract.id], skills: [contract.skill.id] };
  const peersOfTriage = createPeerDirectory([
    { url: BILLING, key: identities.billing.thumbprint, ...allowed },
  ]);
  const peersOfBilling = createPeerDirectory([
    { url: TRIAGE, key: identities.triage.thumbprint, ...allowed },
    { url: MALLORY, key: 'x'.repeat(43), tenant: 'default', contracts: [], skills: [] },
  ]);
  const stores = {
    triage: await openEvidenceFiles(join(dir, 'triage')),
    billing: await openEvidenceFiles(join(dir, 'billing')),
  };
  const secret = new Uint8Array(32).fill(7);
  const artifact = await stores.triage.put(
    once(new TextEncoder().encode('Customer: I was charged twice, 49.00 each.')),
    { mediaType: 'text/plain', filename: 'transcript.txt' },
    { maxBytes: 1024 },
  );
  const downloads: string[] = [];
  const downloader: EvidenceDownloader = {
    async download(url) {
      downloads.push(url);
      const granted = verifyEvidenceUrl(secret, url.slice(TRIAGE.length), new Date());
      const found =
        granted &&
        granted.audience === BILLING &&
        (await stores.triage.find(granted.artifactId, granted.version));
      if (!found) throw new HoldfastError('evidence_unreadable');
      return { mediaType: found.mediaType, body: stores.triage.open(found.sha256) };
    },
  };
  const accepted: WorkItem[] = [];
  const handler: World['handler'] = { current: {} };
  const leaseOfBilling = createLease({
    ledger,
    agent: BILLING,
    logger: silentLogger,
    leaseMs: 15_000,
    beatMs: 5_000,
  });
  const receiver = createReceiver({
    identity: identities.billing,
    ledger,
    lease: leaseOfBilling,
    peers: peersOfBilling,
    keys,
    envelopes,
    evidence: { store: stores.billing, downloader },
    limits: DEFAULT_LIMITS,
    clock,
    logger: silentLogger,
    received: (id) => (id === contract.id ? { contract, handler: handler.current } : null),
    reader: () => null,
    onAccepted: (item) => accepted.push(item),
  });
  const control = createControl({
    self: BILLING,
    tenant: 'default',
    ledger,
    peers: peersOfBilling,
    receiver,
    logger: silentLogger,
    readTransfer: () => Promise.reject(new HoldfastError('provenance_unknown')),
  });
  const principalOf = (agent: string): Principal => ({ agent, tenant: 'default', tokenId: `jti-${agent}` });
  const wire: World['wire'] = { onSend: null };
  const sent: string[] = [];
  const client: PeerClient = {
    async card() {
      return buildAgentCard({
        name: 'billing',
        description: 'billing',
        url: BILLING,
        version: '1.0.0',
        skills: [
          { ...contract.skill, tags: [...contract.skill.tags], inputModes: [...envelopes.mediaTypes] },
        ],
        mediaTypes: [...envelopes.mediaTypes],
      });
    },
    async send(_url, text) {
      sent.push(text);
      const message = parseMessage(JSON.parse(text));
      const deliver = () => receiver.receive(message, principalOf(TRIAGE));
      return wire.onSend ? wire.onSend(message, deliver) : deliver();
    },
    getTask: () => Promise.reject(new HoldfastError('not_found')),
    async control(_url, request) {
      return parseControlAnswer(await control.answer(controlMessage(request), principalOf(TRIAGE)), request);
    },
  };
  const lease = createLease({
    ledger,
    agent: TRIAGE,
    logger: silentLogger,
    leaseMs: 15_000,
    beatMs: 5_000,
  });
  const delivery = createDelivery({
    self: TRIAGE,
    ledger,
    lease,
    peers: peersOfTriage,
    keys,
    client,
    clock,
    logger: silentLogger,
    retryDelaysMs: options.retryDelaysMs ?? [1, 1],
    backoffMs: [1, 5],
    waitMs: 200,
  });
  const sender = createSender({
    identity: identities.triage,
    ledger,
    delivery,
    peers: peersOfTriage,
    keys,
    client,
    envelopes,
    evidence: { store: stores.triage, secret, urlTtlMs: 86_400_000 },
    limits: DEFAULT_LIMITS,
    clock,
    logger: silentLogger,
    escalate: () => Promise.reject(new HoldfastError('usage')),
    contract: (id) => (id === contract.id ? contract : null),
    reader: () => null,
    waiting: () => 'blocking',
  });
  return {
    ledger,
    sender,
    async takeUp(stop = new AbortController().signal) {
      const offers = await lease.claimOffers('default', 100);
      await Promise.all(offers.map((offer) => delivery.pursue(offer, stop)));
      const now = await Promise.all(offers.map(({ key }) => ledger.getOffer(key)));
      return now.map((offer) => [offer?.ref.caseId, offer?.state].join(' '));
    },
    receiver,
    control,
    principalOf,
    identities,
    evidence: { ...stores, artifactId: artifact.artifactId },
    downloads,
    sent,
    accepted,
    wire,
    handler,
    async openCase(caseId, epoch = 1) {
      const ref = { tenant: 'default', root: TRIAGE, caseId };
      const imported = epoch > 1 ? { importedFrom: 'helpdesk' } : {};
      await ledger.openCase({
        ref,
        kind: 'refund-dispute',
        owner: TRIAGE,
        epoch,
        actor: TRIAGE,
        ...imported,
      });
      return ref;
    },
    input: (ref, change = {}) => ({
      ref,
      caseFile: caseFileOf(ref.caseId),
      to: BILLING,
      contract: contract.id,
      evidence: [{ artifactId: artifact.artifactId }],
      ...change,
    }),
    deliver: async (message, agent = TRIAGE) =>
      receiver.receive(parseMessage(JSON.parse(JSON.stringify(message))), principalOf(agent)),
    async lastOffer(caseId) {
      const offers = await ledger.listOffers('default', { caseId });
      const last = offers.sort((a, b) => b.key.attempt - a.key.attempt || b.epoch - a.epoch)[0];
      if (!last) throw new Error('no offer');
      return last;
    },
    advance(ms) {
      aheadMs += ms;
    },
    async close() {
      await receiver.stop();
      await Promise.all([lease.end(), leaseOfBilling.end()]);
      await ledger.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** The data of a task's one decision part. */
export function answerOf(task: Task): Record<string, unknown> {
  return task.artifacts?.[0]?.parts[0]?.data as Record<string, unknown>;
}
