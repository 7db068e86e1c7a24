import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Contract } from '../contract/index.js';
import { type Clock, HoldfastError, type Logger, normalizeAgentUrl, systemClock } from '../core/index.js';
import { createEnvelopeRegistry, envelopeV2 } from '../envelope/index.js';
import {
  checkPeer,
  createReceiver,
  createSender,
  createWorker,
  type HandoffHandler,
  type ReceivedContract,
  runEffect,
  statusPointer,
} from '../handoff/index.js';
import { openEvidenceFiles, openSqliteLedger } from '../storage/index.js';
import { createAuthenticator, createNodeIdentity, createPeerDirectory, pinnedKeyOf } from '../trust/index.js';
import {
  createEvidenceDownloader,
  createGuardedFetch,
  createPeerClient,
  createPeerKeySource,
  type MessageExecutor,
  type NetworkPorts,
} from '../transport/index.js';
import { checkConfig, limitsOf, peersOf, readConfig } from './config.js';
import type { Config } from './config-schema.js';
import { loadContracts, loadModule } from './contracts.js';
import type { Holdfast } from './holdfast.js';
import { applyKinds } from './kinds.js';
import { createLogger } from './logger.js';
import { loadEvidenceSecret, loadNodeKey } from './secrets.js';
import { createService } from './service.js';

export interface OpenOptions {
  /** The agent's folder, which holds its configuration, key and evidence. Default: the current folder. */
  readonly dir?: string;
  /** The configuration as an object with the keys of the file, instead of the file. */
  readonly config?: unknown;
  /** What the agent does with handoffs, by contract id; the same as `onHandoff` for each. */
  readonly handlers?: Readonly<Record<string, HandoffHandler>>;
  /** Answers messages that carry no handoff; without one they are rejected with a clear word. */
  readonly executor?: MessageExecutor;
  /** Default: JSON lines on stderr, at the configured level. */
  readonly logger?: Logger;
  /** The outside world, for tests. */
  readonly ports?: NetworkPorts & { readonly clock?: Clock };
}

/**
 * Opens one agent: reads its configuration, makes its key on the first start, and opens its ledger. Nothing listens until `start`.
 * @throws config_invalid, contract_missing, contract_invalid, schema_newer, ledger_unavailable
 */
export async function openHoldfast(options: OpenOptions = {}): Promise<Holdfast> {
  const dir = resolve(options.dir ?? '.');
  const config = options.config === undefined ? readConfig(dir) : checkConfig(options.config);
  if (options.config !== undefined) mkdirSync(dir, { recursive: true, mode: 0o700 });
  const clock = options.ports?.clock ?? systemClock;
  const logger = options.logger ?? createLogger({ level: config.log.level, agent: config.agent });
  const contracts = await loadContracts(dir, config.contracts);
  const received = new ReceivedContracts(contracts, config);
  const identity = await createNodeIdentity({ url: config.url, privateJwk: await loadNodeKey(dir), clock });
  const ledger = await openSqliteLedger({ file: resolve(dir, config.ledger), clock });

}
