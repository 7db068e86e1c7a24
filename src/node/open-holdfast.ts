import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Clock, type Logger, systemClock } from '../core/index.js';
import { createEnvelopeRegistry, type EnvelopeRegistry, envelopeV2 } from '../envelope/index.js';
import { faultsEnabled } from '../faults/index.js';
import {
  checkArguments,
  createAnnouncer,
  createControl,
  createDelivery,
  createLease,
  createPeople,
  createReceiver,
  createSender,
  createWorker,
  type HandoffHandler,
  queryPeer,
  verifyTransfer,
} from '../handoff/index.js';
import { EVIDENCE_PATH } from '../protocol/index.js';
import { openEvidenceFiles, redactUrl } from '../storage/index.js';
import {
  type AgentExecutor,
  buildAgentCard,
  type CardOptions,
  createEvidenceDownloader,
  createGuardedFetch,
  createNodeServer,
  createPeerClient,
  createPeerKeySource,
  createPushDelivery,
  createPushSender,
  type FetchPolicy,
  type NetworkPorts,
} from '../transport/index.js';
import {
  createAuthenticator,
  createPeerDirectory,
  type NodeIdentity,
  type PeerDirectory,
} from '../trust/index.js';
import { createAgent } from './agent.js';
import { checkConfig, kindsOf, limitsOf, peersOf, readConfig } from './config.js';
import type { Config } from './config-schema.js';
import { loadContracts, loadHandlers } from './contracts.js';
import { Dispatcher } from './dispatcher.js';
import type { Holdfast } from './holdfast.js';
import { ledgerPlace } from './ledger-place.js';
import { createLogger } from './logger.js';
import { openIdentity } from './node-keys.js';
import { CALLER_RETRIES_MS, DEFAULT_PACE, type Pace } from './pace.js';
import { Processes } from './processes.js';
import { checkReaders, checkThinKinds, loadReaders } from './readers.js';
import { ContractBook } from './received.js';
import { loadEvidenceSecret } from './secrets.js';
import { Service } from './service.js';
import { VERSION } from './version.js';
import { Watches } from './watches.js';
import { openWitnessedLedger } from './witnessed-ledger.js';

/** Where an agent lives and what it brings; everything has a default. */
export interface OpenOptions {
  /** The agent's folder, which holds its configuration, key and evidence. Default: the current folder. */
  readonly dir?: string;
  /** The configuration as an object with the keys of the file, instead of the file. */
  readonly config?: unknown;
  /** Path of the ledger file or URL of its database, instead of the one configured; a path is relative to the current folder. */
  readonly ledger?: string;
  /** What the agent does with handoffs, by contract id; the same as `onHandoff` for each. */
  readonly handlers?: Readonly<Record<string, HandoffHandler>>;
  /** Answers messages that carry no handoff; without one they are rejected with a clear word. */
  readonly executor?: AgentExecutor;
  /** Default: JSON lines on stderr, at the configured level. */
  readonly logger?: Logger;
  /** The outside world, for tests. */
  readonly ports?: NetworkPorts & { readonly clock?: Clock; readonly pace?: Partial<Pace> };
}

/**
 * Opens one agent: reads its configuration, makes its key on the first start, and opens its ledger. Nothing listens until `start`.
 * @throws usage, config_invalid, contract_missing, contract_invalid, schema_newer, ledger_unsafe, ledger_unavailable, ledger_changed
 */
export async function openHoldfast(options: OpenOptions = {}): Promise<Holdfast> {
  checkArguments('openHoldfast', options);
  const dir = resolve(options.dir ?? '.');
  const config = options.config === undefined ? readConfig(dir) : checkConfig(options.config);
  if (options.config !== undefined) mkdirSync(dir, { recursive: true, mode: 0o700 });
  const clock = options.ports?.clock ?? systemClock;
  const debug = process.env.HOLDFAST_DEBUG === '1';
  const logger = options.logger ?? createLogger({ level: config.log.level, agent: config.agent, debug });
  if (faultsEnabled) logger.warn({}, 'HOLDFAST_FAULTS IS SET: this process can be made to fail on purpose');
  const contracts = new ContractBook(await loadContracts(dir, config.contracts), config.receives);
  for (const [id, handler] of Object.entries(options.handlers ?? {})) contracts.handle(id, handler);
  checkThinKinds(kindsOf(config), contracts);
  const readers = await loadReaders(dir, config);
  const identity = await openIdentity(dir, config.url, clock);
  const secret = loadEvidenceSecret(dir);
  const store = openEvidenceFiles(resolve(dir, config.evidence.dir));
  const place = ledgerPlace(config, dir, options.ledger);
  const { ledger, check, inspection } = await openWitnessedLedger({
    dir,
    place,
    durability: config.durability,
    clock: options.ports?.clock,
    logger,
  });

  const limits = limitsOf(config);
  const envelopes = createEnvelopeRegistry([envelopeV2], config.vendor);
  const peers = createPeerDirectory(peersOf(config));
  const guarded = createGuardedFetch(fetchPolicyOf(config), options.ports);
  const keys = createPeerKeySource(guarded, limits, clock);
  const client = createPeerClient({ guarded, identity, limits });
  const received = (id: string) => contracts.received(id);

  const self = identity.url;
  const pace = { ...DEFAULT_PACE, ...options.ports?.pace };

  const tenants = [...new Set([config.tenant, ...peersOf(config).map(({ tenant }) => tenant)])];

  const processes = new Processes(dir);
  const lease = createLease({
    ledger,
    agent: self,
    logger,
    ...pace,
    announce: (holder) => processes.enter(holder),
  });
  const watches = new Watches({ agent: self, ledger, client, peers, logger });
  const delivery = createDelivery({
    self,
    ledger,
    lease,
    peers,
    keys,
    client,
    clock,
    logger,
    retryDelaysMs: CALLER_RETRIES_MS,
    backoffMs: pace.offerBackoffMs,
    waitMs: pace.elsewhereMs,
    onTask: async ({ peer, taskId }) => {
      if (config.push.hear_of_offers) await watches.begin(peer, taskId);
    },
  });
  const sender = createSender({
    identity,
    ledger,
    delivery,
    peers,
    keys,
    client,
    envelopes,
    evidence: { store, secret, urlTtlMs: config.evidence.url_ttl },
    limits,
    clock,
    logger,
    escalate: (input) => people.escalate(input),
    contract: (id) => contracts.require(id),
    reader: (kind) => readers.get(kind) ?? null,
    waiting: (kind) => config.kinds[kind]?.waiting ?? 'blocking',
  });
  const people = createPeople({
    ...{ identity, ledger, clock, withdraw: sender.withdraw },
    readTransfer: (receipt, ref) => verifyTransfer(receipt, ref, { identity, peers, keys }, 'receipt'),
  });
  const worker = createWorker({
    self,
    ledger,
    lease,
    envelopes,
    store,
    logger,
    retryDelaysMs: pace.workRetriesMs,
    works: () => contracts.hasWork(),
    ready: () => announcer.asked(),
    received,
  });
  const receiver = createReceiver({
    identity,
    ledger,
    lease,
    peers,
    keys,
    envelopes,
    evidence: { store, downloader: createEvidenceDownloader(guarded, authorizationFor(identity, peers)) },
    limits,
    clock,
    logger,
    received,
    reader: (kind) => readers.get(kind) ?? null,
    onAccepted: (item) => worker.start(item),
  });
  const pushes = createPushDelivery({
    ledger,
    lease,
    send: createPushSender(guarded, clock),
    logger,
    backoffMs: pace.pushBackoffMs,
    giveUpMs: config.push.give_up,
  });
  // What is said of a task is only a reason to look at the offer.
  watches.handle(async ({ peer, taskId }) => {
    for (const tenant of tenants) await delivery.hear(tenant, peer, taskId);
  });
  const announcer = createAnnouncer({
    identity,
    ledger,
    tenants,
    peers,
    keys,
    client,
    lease,
    logger,
    backoffMs: pace.offerBackoffMs,
    runs: (holder) => processes.runs(holder),
  });
  const control = createControl({
    ...{ ledger, peers, receiver, logger, self, tenant: config.tenant },
    readTransfer: (receipt, ref) => verifyTransfer(receipt, ref, { identity, peers, keys }, 'takeover'),
    onAnnounced: (peer) => announcer.heard(peer),
  });
  const service = new Service({
    config,
    lease,
    announcer,
    delivery,
    worker,
    pushes,
    receiver,
    logger,
    buryDead: () => processes.bury((holder) => ledger.release(holder)),
    ledger: { target: redactUrl(place.target), ...inspection },
    async loadHandlers(holdfast) {
      if (config.handlers !== undefined) await (await loadHandlers(dir, config.handlers))(holdfast);
      const kinds = await ledger.listKinds(config.tenant);
      checkThinKinds(kinds, contracts);
      checkReaders(kinds, contracts, readers);
    },
    createServer: () =>
      createNodeServer({
        url: identity.url,
        card: buildAgentCard(cardOf(config, contracts, envelopes)),
        jwks: () => identity.jwks(),
        authenticator: createAuthenticator({ audience: identity.url, peers, keys, clock, logger }),
        receiver,
        control,
        ledger,
        holder: lease.holder,
        guarded,
        onNews: (watch) => watches.read(watch),
        clock,
        evidence: { store, secret },
        ...(options.executor === undefined ? {} : { executor: options.executor }),
        limits,
        logger,
        vendor: config.vendor,
        health: async () => {
          await ledger.incarnation();
          return { status: 'ok' };
        },
      }),
    createDispatcher: (endAbandonedTasks) =>
      new Dispatcher({
        self,
        tenants,
        ledger,
        lease,
        delivery,
        sender,
        worker,
        receiver,
        pushes,
        announcer,
        clock,
        logger,
        sweepMs: pace.sweepMs,
        keepDeadMs: config.push.keep_dead,
        endAbandonedTasks,
      }),
  });
  return createAgent({
    config,
    identity,
    ledger,
    evidence: store,
    contracts,
    readers,
    sender,
    people,
    service,
    receiver,
    announcer,
    watches,
    query: (input) => queryPeer(input, { self, tenant: config.tenant, ledger, peers, keys, client }),
    release: () => guarded.close(),
    checkLedger: async () => {
      await check({ rewrite: true });
    },
  });
}

function fetchPolicyOf({ network }: Config): FetchPolicy {
  return {
    loopback: network.loopback,
    allowedPorts: network.ports,
    allowHosts: network.hosts.length === 0 ? null : network.hosts,
  };
}

/** Only a configured peer gets a token, and only for evidence that it serves itself. */
function authorizationFor(
  identity: NodeIdentity,
  peers: PeerDirectory,
): (url: string) => Promise<string | null> {
  return async (url) => {
    const peer = peers.list().find((one) => url.startsWith(`${one.url}${EVIDENCE_PATH}/`));
    return peer ? `Bearer ${await identity.tokenFor(peer.url)}` : null;
  };
}

function cardOf(config: Config, contracts: ContractBook, envelopes: EnvelopeRegistry): CardOptions {
  const skills = new Map(contracts.listReceived().map(({ skill }) => [skill.id, skill]));
  return {
    name: config.agent,
    description: `Takes over cases: ${[...skills.values()].map(({ name }) => name).join(', ') || 'none at present'}.`,
    url: config.url,
    version: VERSION,
    skills: [...skills.values()].map((skill) => ({ ...skill, inputModes: [...envelopes.mediaTypes] })),
    mediaTypes: envelopes.mediaTypes,
  };
}
