import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import net from 'node:net';
import { afterEach } from 'vitest';
import type { Logger } from '../../src/core/index.js';
import { createLease, type Lease } from '../../src/handoff/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import {
  type ConnectTarget,
  createGuardedFetch,
  createPushDelivery,
  createPushSender,
  type GuardedFetch,
  type PushDelivery,
} from '../../src/transport/index.js';
import type { TestClock } from '../storage/suite/fixtures.js';
import { until } from '../transport/support.js';

export const afterwards: (() => unknown)[] = [];

afterEach(async () => {
  for (const clean of afterwards.splice(0).reverse()) await clean();
});

export const SECRET = Buffer.alloc(24, 9);
export const SIGNING_TOKEN = `whsec_${SECRET.toString('base64')}`;

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Hook {
  readonly port: number;
  readonly url: string;
  readonly received: Received[];
  /** What it answers from now on. */
  answer: (request: Received, response: ServerResponse) => void;
}

export const answerWith =
  (status: number, headers: Record<string, string> = {}, body = '') =>
  (_request: Received, response: ServerResponse): void => {
    response.writeHead(status, headers).end(body);
  };

/** An endpoint for notifications on loopback, which keeps what comes. */
export async function startHook(): Promise<Hook> {
  const received: Received[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const one = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() };
    received.push(one);
    hook.answer(one, response);
  };
  const server = createServer((request, response) => void serve(request, response).catch(() => undefined));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterwards.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as net.AddressInfo;
  const hook: Hook = { port, url: `http://127.0.0.1:${port}/hook`, received, answer: answerWith(200) };
  return hook;
}

/** Reaches these endpoints on loopback, and nothing else. */
export function networkTo(...hooks: readonly Hook[]): GuardedFetch {
  const guarded = createGuardedFetch({ loopback: hooks.map(({ port }) => `127.0.0.1:${port}`) });
  afterwards.push(() => guarded.close());
  return guarded;
}

export interface MadeUpNetwork {
  readonly guarded: GuardedFetch;
  readonly dialled: ConnectTarget[];
  /** What each name resolves to, from now on. */
  addresses: readonly string[];
}

/** A made-up internet: every name resolves as told, and every dial ends at the endpoint on loopback. */
export function madeUpNetwork(hook: Hook): MadeUpNetwork {
  const dialled: ConnectTarget[] = [];
  const guarded = createGuardedFetch(
    { loopback: [] },
    {
      resolve: async () => network.addresses.map((address) => ({ address, family: net.isIP(address) })),
      connect: async (target) => {
        dialled.push(target);
        const socket = net.connect(hook.port, '127.0.0.1');
        await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
        Object.defineProperty(socket, 'remoteAddress', { value: target.address });
        return socket;
      },
    },
  );
  afterwards.push(() => guarded.close());
  const network: MadeUpNetwork = { guarded, dialled, addresses: ['93.184.215.14'] };
  return network;
}

export interface Sending {
  readonly delivery: PushDelivery;
  readonly lease: Lease;
  readonly logged: { readonly fields: object; readonly message: string }[];
  /** Takes up what is due, and waits until nothing more of it is under way. */
  sweep(): Promise<number>;
}

export interface SendingOptions {
  readonly ledger: LedgerStore;
  readonly agent: string;
  readonly guarded: GuardedFetch;
  readonly clock: TestClock;
  readonly timeoutMs?: number;
  readonly giveUpMs?: number;
}

const DAY_MS = 86_400_000;
/** Longer than any of these tests lets pass: leases are not what they are about. */
const LEASE_MS = 100 * DAY_MS;
const BACKOFF_MS = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400].map((seconds) => seconds * 1_000);

/** One process that delivers notifications. */
export async function startSending(options: SendingOptions): Promise<Sending> {
  const { ledger, agent, guarded, clock, timeoutMs = 2_000, giveUpMs = 7 * DAY_MS } = options;
  const logged: Sending['logged'] = [];
  const log = (fields: object, message: string) => void logged.push({ fields, message });
  const logger: Logger = { info: log, warn: log, error: log };
  const lease = createLease({ ledger, agent, logger, leaseMs: LEASE_MS, beatMs: DAY_MS });
  await lease.begin();
  const send = createPushSender(guarded, clock, timeoutMs);
  let underWay = 0;
  const delivery = createPushDelivery({
    ledger: {
      settleNotification: (command) =>
        ledger.settleNotification(command).finally(() => {
          underWay -= 1;
        }),
    },
    lease,
    send: (due) => {
      underWay += 1;
      return send(due);
    },
    logger,
    backoffMs: BACKOFF_MS,
    giveUpMs,
  });
  afterwards.push(async () => {
    await delivery.stop();
    await lease.end();
  });
  return {
    delivery,
    lease,
    logged,
    async sweep() {
      const begun = await delivery.takeUp('acme');
      await until(async () => {
        await new Promise((resolve) => setTimeout(resolve, 2));
        return underWay === 0;
      }, 10_000);
      return begun;
    },
  };
}
