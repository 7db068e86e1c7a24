import type { IncomingHttpHeaders } from 'node:http';
import { type Dispatcher, request as undiciRequest } from 'undici';
import { HoldfastError, isHoldfastError } from '../core/index.js';
import {
  checkTarget,
  createGuardedDispatcher,
  type NetworkPorts,
  type SendState,
} from './guarded-dispatcher.js';
import { checkUrl, type FetchPolicy, forbidden } from './url-policy.js';

export interface GuardedRequest {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Bytes of the answer's body; more is an error, however the length was declared. */
  readonly maxBytes: number;
  /** From the first look at the URL to the last byte of the body, milliseconds. */
  readonly timeoutMs: number;
  /** Nobody will read the answer's body, so that its size and encoding do not matter. */
  readonly statusOnly?: boolean;
}

export interface GuardedResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Readable once, as it arrives. @throws outcome_unknown, peer_error */
  readonly body: AsyncIterable<Uint8Array>;
  /** The whole body. @throws outcome_unknown, peer_error */
  bytes(): Promise<Uint8Array>;
  /** Lets go of a body that nobody will read: it may never end. */
  discard(): void;
}

/** The only way out of a node: every fetch of evidence, cards, keys and every message goes through one. */
export interface GuardedFetch {
  /**
   * One request, one answer; redirects are never followed and nothing is ever decompressed.
   *
   * @throws url_forbidden where the URL or an address behind it may not be reached; `data.reason` says why
   * @throws peer_unreachable where no connection was made, so that nothing can have arrived
   * @throws outcome_unknown where the request may have arrived but no whole answer came
   * @throws peer_error where the answer breaks a rule; `data.reason` is `too_large` or `content_encoding`
   */
  request(url: string, options: GuardedRequest): Promise<GuardedResponse>;
  /**
   * Whether a URL may be reached as its host resolves now, without connecting to it.
   *
   * @throws url_forbidden; peer_unreachable where the host has no address
   */
  check(url: string): Promise<void>;
  /** The same as a `fetch`, for clients that want one. */
  asFetch(limits: { maxBytes: number; timeoutMs: number }): typeof fetch;
  /** Ends every connection; requests under way fail. */
  close(): Promise<void>;
}

const tooLarge = () =>
  new HoldfastError('peer_error', 'The answer is larger than the limit.', { data: { reason: 'too_large' } });

/** Why a request failed, told by whether its bytes may have left. */
function failure(error: unknown, state: SendState): HoldfastError {
  if (isHoldfastError(error)) return error;
  return state.sent
    ? new HoldfastError('outcome_unknown', 'The peer did not answer in full.', { cause: error })
    : new HoldfastError('peer_unreachable', 'No connection could be made.', { cause: error });
}

/** @throws url_forbidden on a redirect; peer_error on an encoding or a declared length that is refused */
function checkAnswer(
  status: number,
  headers: IncomingHttpHeaders,
  { maxBytes, statusOnly }: GuardedRequest,
): void {
  if (status >= 300 && status < 400 && status !== 304) {
    throw forbidden('redirect', 'The answer is a redirect, which is never followed.');
  }
  if (statusOnly === true) return;
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && String(encoding).toLowerCase() !== 'identity') {
    throw new HoldfastError('peer_error', 'The answer is encoded although identity was asked for.', {
      data: { reason: 'content_encoding' },
    });
  }
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge();
}

async function* bounded(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  state: SendState,
  done: () => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let received = 0;
  try {
    for await (const chunk of body) {
      received += chunk.byteLength;
      if (received > maxBytes) throw tooLarge();
      yield chunk;
    }
  } catch (error) {
    throw failure(error, state);
  } finally {
    done();
  }
}

/** The request ends when its time does, even while a connection is still being made. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}

async function send(
  dispatcher: Dispatcher,
  policy: FetchPolicy,
  url: string,
  options: GuardedRequest,
): Promise<GuardedResponse> {
  const target = checkUrl(policy, url);
  const state: SendState = { sent: false };
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(new Error('time limit reached')), options.timeoutMs);
  const done = () => clearTimeout(timer);
  let answer: Dispatcher.ResponseData<SendState>;
  try {
    const pending = undiciRequest(target, {
      dispatcher,
      method: options.method ?? 'GET',
      headers: { ...options.headers, 'accept-encoding': 'identity', 'user-agent': 'holdfast' },
      body: options.body ?? null,
      signal: abort.signal,
      opaque: state,
      headersTimeout: options.timeoutMs,
      bodyTimeout: options.timeoutMs,
    });
    answer = await untilAborted(pending, abort.signal);
  } catch (error) {
    done();
    throw failure(error, state);
  }
  const discard = () => {
    done();
    answer.body.on('error', () => undefined).destroy();
  };
  try {
    checkAnswer(answer.statusCode, answer.headers, options);
  } catch (error) {
    discard();
    throw error;
  }
  const body = bounded(answer.body, options.maxBytes, state, done);
  return {
    status: answer.statusCode,
    headers: answer.headers,
    body,
    bytes: async () => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of body) chunks.push(chunk);
      return Buffer.concat(chunks);
    },
    discard,
  };
}

function toHeaders(headers: IncomingHttpHeaders): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    if (value === undefined) return [];
    return Array.isArray(value) ? value.map((one) => [name, one]) : [[name, value]];
  });
}

export function createGuardedFetch(policy: FetchPolicy, ports: NetworkPorts = {}): GuardedFetch {
  const dispatcher = createGuardedDispatcher(policy, ports);
  const request: GuardedFetch['request'] = (url, options) => send(dispatcher, policy, url, options);
  return {
    request,
    check: async (url) => checkTarget(policy, checkUrl(policy, url), ports),
    asFetch: (limits) => async (input, init) => {
      const method = init?.method ?? 'GET';
      const body = init?.body ?? undefined;
      if ((method !== 'GET' && method !== 'POST') || (body !== undefined && typeof body !== 'string')) {
        throw new HoldfastError('usage', 'Only GET, and POST with a text body, can be sent.');
      }
      const url = input instanceof Request ? input.url : String(input);
      const answer = await request(url, {
        ...limits,
        method,
        headers: Object.fromEntries(new Headers(init?.headers)),
        ...(body === undefined ? {} : { body }),
      });
      return new Response(answer.status === 204 || answer.status === 304 ? null : streamOf(answer.body), {
        status: answer.status,
        headers: toHeaders(answer.headers),
      });
    },
    close: () => dispatcher.destroy(),
  };
}

function streamOf(body: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const next = await iterator.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
    cancel: async () => {
      await iterator.return?.();
    },
  });
}
