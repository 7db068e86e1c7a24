import { connect } from 'node:net';
import { HoldfastError, type Logger, pause } from '../core/index.js';
import { faultPoint } from '../faults/index.js';
import type { Announcer, Delivery, Lease, Receiver, Worker } from '../handoff/index.js';
import type { Inspection } from '../storage/index.js';
import type { NodeServer, PushDelivery } from '../transport/index.js';
import { peersOf } from './config.js';
import type { Config } from './config-schema.js';
import type { Dispatcher } from './dispatcher.js';
import type { Holdfast } from './holdfast.js';
import { loopbackAddress } from './loopback.js';

export interface ServiceParts {
  readonly config: Config;
  readonly lease: Lease;
  readonly announcer: Announcer;
  readonly delivery: Delivery;
  readonly worker: Worker;
  readonly pushes: PushDelivery;
  readonly receiver: Pick<Receiver, 'stop'>;
  readonly logger: Logger;
  /** What the node found out about the database of its ledger. */
  readonly ledger: Inspection & { readonly target: string };
  /** Registers what the configured module has to say. */
  loadHandlers(holdfast: Holdfast): Promise<void>;
  /** Ends the leases of processes that are surely gone. */
  buryDead(): Promise<void>;
  /** Made when the agent starts, since its card names what it receives by then. */
  createServer(): NodeServer;
  createDispatcher(endAbandonedTasks: () => Promise<void>): Dispatcher;
}

/** What streams are given to end in, once there is nothing left to tell. */
const STREAM_GRACE_MS = 2_000;

/** The listening side of an agent: up once, down once. */
export class Service {
  readonly #parts: ServiceParts;
  #server: NodeServer | null = null;
  #dispatcher: Dispatcher | null = null;
  #started = false;

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  /** @throws port_taken, usage when it was started before, and what the module of handlers throws */
  async start(
    listen: { host: string; port: number },
    holdfast: Holdfast,
  ): Promise<{ url: string; host: string; port: number }> {
    if (this.#started) throw new HoldfastError('usage', 'The agent was started before.');
    await this.#parts.loadHandlers(holdfast);
    this.#started = true;
    this.#describeLedger();
    const { config, logger, lease } = this.#parts;
    // Before anything is worked on, so that no other process takes it for abandoned.
    await lease.begin();
    await this.#parts.buryDead();
    // Before anybody is answered: from here on what may have been lost is waited for.
    await this.#parts.announcer.begin();
    const server = this.#parts.createServer();
    const { port } = await listenOn(server, listen);
    this.#server = server;
    warnOfUnreachableUrl(config, { host: listen.host, port }, logger);
    logger.info({ url: config.url, host: listen.host, port }, 'listening');
    faultPoint('N1.listening');
    const peers = peersOf(config);
    this.#dispatcher = this.#parts.createDispatcher(() => server.endAbandonedTasks(peers));
    this.#dispatcher.start();
    return { url: config.url, host: listen.host, port };
  }

  #describeLedger(): void {
    const { ledger, logger } = this.#parts;
    logger.info({ ledger: ledger.target, database: ledger.summary }, 'ledger opened');
    for (const { severity, code, message } of ledger.findings) {
      const fields = { finding: code, what: message };
      if (severity === 'unsafe')
        logger.warn(fields, 'the database of the ledger can lose what it has committed');
      else if (severity === 'warn') logger.warn(fields, 'look at the database of the ledger');
    }
  }

  get started(): boolean {
    return this.#started;
  }

  /** What is not done when `shutdown` has passed is taken up by another process, or at the next start. */
  async stop(): Promise<void> {
    const { config, announcer, delivery, worker, pushes, receiver, lease, logger } = this.#parts;
    faultPoint('N3.draining');
    const inTime = await within(config.shutdown, [
      this.#server?.drain(),
      this.#dispatcher?.stop(),
      announcer.stop(),
      delivery.idle(),
      worker.stop(),
      pushes.stop(),
      receiver.stop(),
    ]);
    if (!inTime)
      logger.warn({ limitMs: config.shutdown }, 'stopped before all was done; the rest is taken up again');
    await this.#server?.close(inTime ? STREAM_GRACE_MS : 0);
    await lease.end();
    faultPoint('N4.drained');
  }

  /** @throws peer_unreachable when nothing listens where this agent's node should */
  async checkServing(): Promise<void> {
    const { config } = this.#parts;
    const { host, port } = config.listen;
    if (this.#server || (await answers(host, port))) return;
    const address = new URL(config.url);
    const publicPort = Number(address.port || (address.protocol === 'https:' ? 443 : 80));
    if (loopbackAddress(config.url) && (await answers(address.hostname, publicPort))) return;
    throw new HoldfastError(
      'peer_unreachable',
      `The receiver fetches evidence from this agent, and nothing listens at ${host}:${port}. Start it with \`holdfast serve\`.`,
      { data: { peer: config.url } },
    );
  }
}

/** Whether all of it ended in time; what did not goes on, and then nobody hears of it. */
async function within(limitMs: number, work: readonly unknown[]): Promise<boolean> {
  const waiting = new AbortController();
  const ended = Promise.allSettled(work).then(() => true);
  const late = pause(limitMs, waiting.signal).then(() => false);
  const inTime = await Promise.race([ended, late]);
  waiting.abort();
  return inTime;
}

async function listenOn(
  server: NodeServer,
  listen: { host: string; port: number },
): Promise<{ port: number }> {
  try {
    return await server.listen(listen.port, listen.host);
  } catch (cause) {
    const { code } = cause as { code?: string };
    const address = `${listen.host}:${listen.port}`;
    if (code === 'port_taken') {
      throw new HoldfastError(
        'port_taken',
        `Something else listens at ${address}. Stop it, or choose another port with --port or listen.port.`,
        { data: { host: listen.host, port: listen.port }, cause },
      );
    }
    if (code === 'EADDRNOTAVAIL' || code === 'EACCES' || code === 'ENOTFOUND') {
      throw new HoldfastError('config_invalid', `The node cannot listen at ${address} (${code}).`, { cause });
    }
    throw cause;
  }
}

function warnOfUnreachableUrl(
  { url }: Config,
  listening: { host: string; port: number },
  logger: Logger,
): void {
  const local = loopbackAddress(url);
  if (local === null) return;
  if (!loopbackAddress(`http://${bracketed(listening.host)}`)) {
    logger.warn(
      { url, ...listening },
      'this node listens for other machines, but its url means nothing there',
    );
  } else if (!local.endsWith(`:${listening.port}`)) {
    logger.warn({ url, ...listening }, 'peers reach this node at its url, which names another port');
  }
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

function answers(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: host.replace(/^\[|\]$/g, ''), port, timeout: 2_000 });
    const end = (result: boolean) => {
      socket.destroy();
      resolve(result);
    };
    socket.once('connect', () => end(true));
    socket.once('timeout', () => end(false));
    socket.once('error', () => end(false));
  });
}
