import { lookup } from 'node:dns/promises';
import net from 'node:net';
import tls from 'node:tls';
import { Agent, type buildConnector, type Dispatcher } from 'undici';
import { HoldfastError } from '../core/index.js';
import { sameAddress } from './addresses.js';
import { bareHost, type FetchPolicy, forbidden, isNamedLoopback, isPermittedAddress } from './url-policy.js';

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

export interface ConnectTarget {
  /** The checked address to dial; never resolved again. */
  readonly address: string;
  readonly port: number;
  /** The name the certificate must be for. */
  readonly host: string;
  readonly secure: boolean;
}

/** What the guarded fetch needs of the network; tests bring their own. */
export interface NetworkPorts {
  resolve?(host: string): Promise<readonly ResolvedAddress[]>;
  connect?(target: ConnectTarget): Promise<net.Socket>;
}

const CONNECT_TIMEOUT_MS = 10_000;

async function resolveHost(host: string): Promise<readonly ResolvedAddress[]> {
  return lookup(host, { all: true, verbatim: true });
}

function dial(target: ConnectTarget): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const options = { host: target.address, port: target.port, noDelay: true };
    const socket = target.secure
      ? tls.connect({
          ...options,
          ...(net.isIP(target.host) === 0 ? { servername: target.host } : {}),
          ALPNProtocols: ['http/1.1'],
        })
      : net.connect(options);
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('connect timed out')));
    socket.once('error', reject);
    socket.once(target.secure ? 'secureConnect' : 'connect', () => {
      socket.setTimeout(0);
      socket.removeListener('error', reject);
      resolve(socket);
    });
  });
}

function placeOf({
  protocol,
  hostname,
  port,
}: Pick<buildConnector.Options, 'protocol' | 'hostname' | 'port'>) {
  const secure = protocol === 'https:';
  return { secure, host: bareHost(hostname), port: Number(port || (secure ? 443 : 80)) };
}

/** @throws url_forbidden where any of them may not be reached; what the resolver throws */
async function addressesOf(
  policy: FetchPolicy,
  ports: Pick<Required<NetworkPorts>, 'resolve'>,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<readonly ResolvedAddress[]> {
  const named = isNamedLoopback(policy, host, String(port));
  const answers =
    net.isIP(host) === 0 ? await ports.resolve(host) : [{ address: host, family: net.isIP(host) }];
  if (answers.length === 0) throw new Error('the name has no address');
  if (!answers.every(({ address }) => isPermittedAddress(address, named))) {
    throw forbidden('address', 'The host resolves to an address this node does not connect to.');
  }
  return answers;
}

/** What a connection to the URL would be checked for, without making one. @throws url_forbidden, peer_unreachable */
export async function checkTarget(policy: FetchPolicy, url: URL, ports: NetworkPorts = {}): Promise<void> {
  try {
    await withinLimit(addressesOf(policy, { resolve: ports.resolve ?? resolveHost }, placeOf(url)));
  } catch (error) {
    throw asUnreachable(error);
  }
}

function asUnreachable(error: unknown): HoldfastError {
  return error instanceof HoldfastError
    ? error
    : new HoldfastError('peer_unreachable', 'No connection could be made.', { cause: error });
}

/**
 * Resolves, checks every answer, dials one of the checked addresses and looks again at who answered. A name whose answers
 * mix good and bad is refused as a whole, and nothing resolves between the check and the dial, so rebinding gains nothing.
 */
async function connectGuarded(
  policy: FetchPolicy,
  ports: Required<NetworkPorts>,
  options: buildConnector.Options,
): Promise<net.Socket> {
  const { secure, host, port } = placeOf(options);
  const answers = await addressesOf(policy, ports, { host, port });
  let last: unknown;
  for (const { address } of answers.slice(0, 4)) {
    try {
      const socket = await ports.connect({ address, port, host, secure });
      if (sameAddress(socket.remoteAddress ?? '', address)) return socket;
      socket.destroy();
      last = forbidden('address', 'The connection reached another address than the one that was checked.');
      break;
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

function withinLimit<T>(connecting: Promise<T>, discard: (late: T) => void = () => undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      reject(new Error('connect timed out'));
    }, CONNECT_TIMEOUT_MS);
    connecting
      .then((made) => (late ? discard(made) : resolve(made)), reject)
      .finally(() => clearTimeout(timer));
  });
}

/** Whether the bytes of a request may have left; before that, a failure means that nothing happened. */
export interface SendState {
  sent: boolean;
}

const markSent: Dispatcher.DispatchInterceptor = (dispatch) => (options, handler) =>
  dispatch(options, {
    // Called when the request is about to be written to a connected socket.
    onRequestStart: (controller, context) => {
      const state = (options as Dispatcher.RequestOptions<SendState | null>).opaque;
      if (state != null) state.sent = true;
      handler.onRequestStart?.(controller, context);
    },
    onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (...args) => handler.onResponseError?.(...args),
  });

/**
 * A dispatcher that can only reach what the policy permits; it reads no proxy setting of the environment. Requests carry a
 * `SendState` as `opaque`.
 */
export function createGuardedDispatcher(policy: FetchPolicy, ports: NetworkPorts = {}): Dispatcher {
  const network = { resolve: ports.resolve ?? resolveHost, connect: ports.connect ?? dial };
  const agent = new Agent({
    allowH2: false,
    pipelining: 1,
    connections: 64,
    keepAliveTimeout: 4_000,
    maxHeaderSize: 16 * 1024,
    connect: (options, callback) => {
      withinLimit(connectGuarded(policy, network, options), (late) => late.destroy()).then(
        (socket) => callback(null, socket),
        (error: unknown) => callback(asUnreachable(error), null),
      );
    },
  });
  return agent.compose(markSent);
}
