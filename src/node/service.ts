import { connect } from 'node:net';
import { HoldfastError, type Logger } from '../core/index.js';
import { faultPoint } from '../faults/index.js';
import type { Sender, Worker } from '../handoff/index.js';
import type { NodeServer } from '../transport/index.js';
import type { Config } from './config-schema.js';
import type { Holdfast } from './holdfast.js';
import { loopbackAddress } from './loopback.js';

export interface ServiceParts {
  readonly config: Config;
  readonly sender: Sender;
  readonly worker: Worker;
  readonly logger: Logger;
  /** Registers what the configured module has to say. */
  loadHandlers(holdfast: Holdfast): Promise<void>;
  /** Made when the agent starts, since its card names what it receives by then. */
  createServer(): NodeServer;
}

/** The listening side of an agent: up once, down once. */
export class Service {
  readonly #parts: ServiceParts;
  #server: NodeServer | null = null;
  #recovery: Promise<void> = Promise.resolve();
  #started = false;
  readonly #stopping = new AbortController();

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
    const server = this.#parts.createServer();
    const { port } = await listenOn(server, listen);
    this.#server = server;
    const { config, logger } = this.#parts;
    warnOfUnreachableUrl(config, { host: listen.host, port }, logger);
    logger.info({ url: config.url, host: listen.host, port }, 'listening');
    faultPoint('N1.listening');
    this.#recovery = this.#recover();
    return { url: config.url, host: listen.host, port };
  }

  get started(): boolean {
    return this.#started;
  }

  async stop(): Promise<void> {
    faultPoint('N3.draining');
    this.#stopping.abort();
    await this.#server?.close();
    await this.#recovery;
    await this.#parts.worker.drain();
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

  /** In the background: a peer that is down must not keep this agent from starting. */
  async #recover(): Promise<void> {
    const { config, sender, worker, logger } = this.#parts;
    const tenants = [...new Set([config.tenant, ...config.peers.flatMap(({ tenant }) => tenant ?? [])])];
    try {
      const work = await worker.resume(tenants);
      const offers = await sender.resume(tenants, this.#stopping.signal);
      faultPoint('N2.recovered');
      if (work + offers.length === 0) return;
      const states = offers.map(({ offer, state }) => `${offer.key.handoffId}:${offer.key.attempt} ${state}`);
      logger.info({ work, offers: states }, 'recovered');
    } catch (err) {
      logger.error({ err }, 'recovery stopped; open offers stay open and can be sent again');
    }
  }
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
