import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { AgentCard } from '@a2a-js/sdk';
import type { AgentExecutor } from '@a2a-js/sdk/server';
import {
  type Clock,
  HoldfastError,
  type JsonObject,
  type Limits,
  type Logger,
  normalizeAgentUrl,
  pause,
  systemClock,
} from '../core/index.js';
import type { EvidenceStore } from '../evidence/index.js';
import type { ControlReceiver, OfferReceiver } from '../handoff/index.js';
import type { LedgerStore, TaskWatch } from '../ledger/index.js';
import {
  AGENT_CARD_PATH,
  DEFAULT_VENDOR,
  EVIDENCE_PATH,
  JSON_RPC_PATH,
  JWKS_PATH,
  REST_PATH,
  WATCH_PATH,
} from '../protocol/index.js';
import type { Authenticator } from '../trust/index.js';
import { AuthGate } from './auth-gate.js';
import type { Call } from './call.js';
import { refusingExecutor } from './default-executor.js';
import { toWireError } from './errors.js';
import type { GuardedFetch } from './guarded-fetch.js';
import { createJsonRpcBinding } from './json-rpc.js';
import { malformed, refuseConnection } from './malformed.js';
import { checkRequest, type Target } from './request-checks.js';
import { LedgerRequestHandler } from './request-handler.js';
import { type Binding, sendError } from './respond.js';
import { createRestBinding } from './rest.js';
import { createPublicRoutes, serveEvidence } from './routes.js';
import { LedgerTaskStore } from './task-store.js';
import { createWatchRoute } from './watch-route.js';

const HEALTH_PATH = '/healthz';

/** One for all: to make one looks at the stack, and every request ends with it. */
const GONE = new DOMException('The connection is closed.', 'AbortError');

export interface NodeServerOptions {
  /** The public base URL of the agent, which its card and its peers name. Routes stand below its path. */
  readonly url: string;
  /** The Agent Card as wire JSON. */
  readonly card: JsonObject;
  readonly jwks: () => object;
  readonly authenticator: Authenticator;
  readonly receiver: OfferReceiver;
  readonly control: ControlReceiver;
  readonly ledger: LedgerStore;
  /** Names this process, which has a lease, in the tasks that it works on. */
  readonly holder: string;
  /** Judges where peers want to be told of their tasks. */
  readonly guarded: Pick<GuardedFetch, 'check'>;
  /** Reads a task at a peer of which a notification came. */
  readonly onNews: (watch: TaskWatch) => Promise<void>;
  /** By which the age of notifications is judged; the system's by default. */
  readonly clock?: Clock;
  readonly evidence: { readonly store: EvidenceStore; readonly secret: Uint8Array };
  /** Answers plain messages; without one they are refused in a sentence. */
  readonly executor?: AgentExecutor;
  readonly limits: Limits;
  readonly logger: Logger;
  readonly vendor?: string;
  readonly health: () => Promise<object>;
  /** How long a plain message to a task waits for an earlier one, milliseconds; 10,000 by default. */
  readonly turnWaitMs?: number;
}

export interface NodeServer {
  /** @throws port_taken */
  listen(port: number, host: string): Promise<{ port: number }>;
  /** Ends the tasks of these peers that a process of this agent left unfinished when it ended. */
  endAbandonedTasks(peers: readonly { readonly tenant: string; readonly url: string }[]): Promise<void>;
  /**
   * Refuses messages from now on (503, try again), while cards, keys and evidence are still served to those who judge our offers.
   * Resolves when no call and no execution is under way; streams may be.
   */
  drain(): Promise<void>;
  /** Stops listening, ends streams, and gives requests under way `graceMs` (2,000 by default). */
  close(graceMs?: number): Promise<void>;
}

/** One port for the card, the keys, evidence, JSON-RPC and HTTP+JSON; all errors are JSON, none says more than it must. */
export function createNodeServer(options: NodeServerOptions): NodeServer {
  const { limits, logger, ledger, receiver, control, evidence } = options;
  const url = normalizeAgentUrl(options.url);
  const base = new URL(url).pathname.replace(/\/$/, '');
  const tasks = new LedgerTaskStore(ledger, url, options.holder);
  const handler = new LedgerRequestHandler({
    card: AgentCard.fromJSON(options.card),
    tasks,
    ledger,
    agent: url,
    guarded: options.guarded,
    receiver,
    control,
    executor: options.executor ?? refusingExecutor,
    logger,
    vendor: options.vendor ?? DEFAULT_VENDOR,
    turnWaitMs: options.turnWaitMs ?? 10_000,
  });
  const gate = new AuthGate(options.authenticator, limits);
  const jsonRpc = createJsonRpcBinding(handler, limits);
  const rest = createRestBinding(handler, limits);
  const health = async () => {
    if (draining) throw new HoldfastError('busy');
    return options.health();
  };
  const routes = createPublicRoutes({ ...options, health });
  const publicRoutes = new Map([
    [`${base}${AGENT_CARD_PATH}`, routes.serveCard],
    [`${base}${JWKS_PATH}`, routes.serveKeys],
    [`${base}${HEALTH_PATH}`, routes.serveHealth],
  ]);
  const takeNews = createWatchRoute({ ...options, agent: url, clock: options.clock ?? systemClock });
  const allowedHosts = new Set([new URL(url).host]);
  const open = new Set<AbortController>();
  const responses = new Set<ServerResponse>();
  let draining = false;

  function bindingOf(path: string): Binding {
    return path === `${base}${JSON_RPC_PATH}` ? 'json-rpc' : 'rest';
  }

  /** Everything behind authentication. What does not exist is not told apart from what nobody may see. */
  async function routeAuthenticated(
    request: IncomingMessage,
    response: ServerResponse,
    target: Target,
    call: Call,
  ): Promise<void> {
    const { path, query } = target;
    const reads = request.method === 'GET' || request.method === 'HEAD';
    if (path === `${base}${JSON_RPC_PATH}` && request.method === 'POST') {
      return jsonRpc(request, response, query, call);
    }
    if (path.startsWith(`${base}${REST_PATH}/`)) {
      const below = path.slice(base.length + REST_PATH.length);
      return rest(request, response, { path: below, query }, call);
    }
    const evidencePath = `${base}${EVIDENCE_PATH}/`;
    if (path.startsWith(evidencePath) && /^[^/]+\/[^/]+$/.test(path.slice(evidencePath.length)) && reads) {
      return serveEvidence(evidence, request, response, call.principal);
    }
    throw new HoldfastError('not_found');
  }

  async function route(request: IncomingMessage, response: ServerResponse, note: RequestNote): Promise<void> {
    const target = checkRequest(request, allowedHosts);
    note.path = target.path;
    note.binding = bindingOf(target.path);
    const publicRoute = publicRoutes.get(target.path);
    if (publicRoute !== undefined && (request.method === 'GET' || request.method === 'HEAD')) {
      return publicRoute(request, response);
    }
    if (draining && request.method === 'POST') {
      response.setHeader('connection', 'close');
      throw new HoldfastError('busy');
    }
    const watchPath = `${base}${WATCH_PATH}/`;
    if (target.path.startsWith(watchPath) && request.method === 'POST') {
      // It proves by itself where it comes from.
      return takeNews(request, response, target.path.slice(watchPath.length));
    }
    const principal = await gate.admit(request.headers.authorization);
    note.agent = principal.agent;
    const gone = new AbortController();
    open.add(gone);
    response.once('close', () => {
      open.delete(gone);
      gone.abort(GONE);
    });
    const call: Call = { principal, signal: gone.signal, message: null, error: undefined };
    note.call = call;
    return routeAuthenticated(request, response, target, call);
  }

  function log(request: IncomingMessage, response: ServerResponse, note: RequestNote, ms: number): void {
    const fields = {
      method: request.method,
      path: note.path,
      // A client that left before the answer began has not been told anything.
      status: response.headersSent ? response.statusCode : null,
      ms,
      ...(note.agent === null ? {} : { agent: note.agent }),
    };
    const failed = note.failed ?? note.call?.error;
    if (failed === undefined || toWireError(failed).http < 500) logger.info(fields, 'request');
    else logger.error({ ...fields, err: failed }, 'a request failed here');
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const note: RequestNote = { path: null, binding: 'rest', agent: null, call: null, failed: undefined };
    const startedAt = performance.now();
    responses.add(response);
    response.on('error', () => undefined);
    response.once('close', () => {
      responses.delete(response);
      log(request, response, note, Math.round(performance.now() - startedAt));
    });
    try {
      await route(request, response, note);
    } catch (error) {
      note.failed = error;
      if (response.headersSent) response.destroy();
      else sendError(response, note.binding, toWireError(error));
    }
  }

  const server = createServer(
    {
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 5_000,
      // The two limits above are only looked at this often.
      connectionsCheckingInterval: 2_000,
      maxHeaderSize: 16 * 1024,
      // A missing Host is refused with the other malformed requests, in JSON.
      requireHostHeader: false,
    },
    (request, response) => void serve(request, response),
  );
  server.maxRequestsPerSocket = 10_000;
  server.maxConnections = 2_000;
  server.on('checkExpectation', (_request, response: ServerResponse) =>
    sendError(response, 'rest', malformed(417)),
  );
  server.on('clientError', (error, socket: Socket) => {
    // An answer that has begun must not be continued with another.
    const begun = [...responses].some((one) => one.socket === socket && one.headersSent);
    if (begun) socket.destroy();
    else refuseConnection(error, socket);
  });

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', (error: NodeJS.ErrnoException) =>
          reject(
            error.code === 'EADDRINUSE'
              ? new HoldfastError('port_taken', `Port ${port} on ${host} is in use.`, { data: { port } })
              : error,
          ),
        );
        server.listen(port, host, () => {
          const bound = (server.address() as AddressInfo).port;
          for (const name of [host, 'localhost', '127.0.0.1', '[::1]']) allowedHosts.add(`${name}:${bound}`);
          resolve({ port: bound });
        });
      }),
    async endAbandonedTasks(peers) {
      for (const { tenant, url: peer } of peers) await tasks.endAbandoned(tenant, peer);
    },
    async drain() {
      draining = true;
      while (handler.busy || [...responses].some((response) => !isStream(response))) await pause(20);
    },
    close: async (graceMs = 2_000) => {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      for (const call of open) call.abort();
      // A connection whose answer has just ended is idle only now, and would stay open for its next request.
      const idle = setInterval(() => server.closeIdleConnections(), 25);
      const limit = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearInterval(idle);
      clearTimeout(limit);
    },
  };
}

/** A stream lasts as long as its client wants; what it tells of is an execution, which is waited for. */
function isStream(response: ServerResponse): boolean {
  return String(response.getHeader('content-type')).startsWith('text/event-stream');
}

/** What the log line of a request says; never a query, which may be a secret. */
interface RequestNote {
  path: string | null;
  binding: Binding;
  agent: string | null;
  call: Call | null;
  failed: unknown;
}
