import type { IncomingMessage, ServerResponse } from 'node:http';
import { SendMessageRequest, StreamResponse } from '@a2a-js/sdk';
import { RequestMalformedError } from '@a2a-js/sdk/errors';
import {
  type A2ARequestHandler,
  defaultServerCallContextBuilder,
  ServerCallContext,
} from '@a2a-js/sdk/server';
import { restHandler } from '@a2a-js/sdk/server/express';
import express from 'express';
import { HoldfastError, isJsonObject, type JsonObject, type JsonValue, type Limits } from '../core/index.js';
import { A2A_VERSION, parseMessage } from '../protocol/index.js';
import { readJson } from './body.js';
import { attachCall, type Call, CallUser } from './call.js';
import { toRestBody, toWireError } from './errors.js';
import { activate, requestedExtensions } from './extensions.js';
import { checkVersion, type Target } from './request-checks.js';
import { A2A_TYPE, JSON_TYPE, sendError } from './respond.js';
import { sendEvents } from './sse.js';

/** Each route also exists below a tenant of the caller's choosing, which means nothing here. */
const SEND = /^(?:\/[^/]+)?\/message:(send|stream)$/;
const SUBSCRIBE = /^(?:\/[^/]+)?\/tasks\/([^/]+):subscribe$/;

/** The parameters with the message as it was read strictly, so that the SDK's codec has nothing left to interpret. */
function readSend(body: JsonValue | undefined, call: Call): JsonObject {
  if (!isJsonObject(body)) throw new RequestMalformedError('The body must be an object');
  if (body.message === undefined) throw new RequestMalformedError('message is required');
  call.message = parseMessage(body.message);
  return { ...body, message: call.message as unknown as JsonObject };
}

/** The SDK's HTTP+JSON adapter, with our answers in place of its own where something failed. */
function createAdapter(handler: A2ARequestHandler, calls: WeakMap<IncomingMessage, Call>): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use((request, response, next) => {
    const call = calls.get(request) as Call;
    const json = response.json.bind(response);
    response.json = (body) => {
      // A 500 that our handler knows nothing of is the SDK's codec failing on parameters it cannot read.
      const fault = call.error ?? (response.statusCode === 500 ? new RequestMalformedError() : undefined);
      if (fault === undefined) return json(body);
      sendError(response, 'rest', toWireError(fault));
      return response;
    };
    next();
  });
  app.use(
    restHandler({
      requestHandler: handler,
      userBuilder: async (request) => new CallUser(calls.get(request) as Call),
      contextBuilder: (options) => {
        const context = defaultServerCallContextBuilder(options);
        activate(context);
        return attachCall(context, (options.user as CallUser).call);
      },
    }),
  );
  app.use((_request, response) => sendError(response, 'rest', toWireError(new HoldfastError('not_found'))));
  const onError: express.ErrorRequestHandler = (error, request, response, _next) => {
    const call = calls.get(request) as Call;
    call.error ??= error;
    sendError(response, 'rest', toWireError(call.error));
  };
  app.use(onError);
  return app;
}

/** The HTTP+JSON binding: streams are written here, everything else by the SDK's adapter. */
export function createRestBinding(handler: A2ARequestHandler, limits: Limits) {
  const calls = new WeakMap<IncomingMessage, Call>();
  const adapter = createAdapter(handler, calls);

  function contextFor(request: IncomingMessage, call: Call): ServerCallContext {
    const requested = requestedExtensions(request);
    const options = {
      user: new CallUser(call),
      requestedVersion: A2A_VERSION,
      requestedExtensions: requested,
    };
    return attachCall(new ServerCallContext(options), call);
  }

  /** The stream that is asked for, or `null` where the request wants none. */
  function streamOf(
    request: IncomingMessage,
    path: string,
    params: JsonObject | undefined,
    call: Call,
  ): AsyncGenerator<StreamResponse, void, undefined> | null {
    if (params !== undefined && SEND.exec(path)?.[1] === 'stream') {
      return handler.sendMessageStream(SendMessageRequest.fromJSON(params), contextFor(request, call));
    }
    const id = request.method === 'GET' || request.method === 'POST' ? SUBSCRIBE.exec(path)?.[1] : undefined;
    return id === undefined ? null : handler.resubscribe({ tenant: '', id }, contextFor(request, call));
  }

  return async (
    request: IncomingMessage,
    response: ServerResponse,
    target: Target,
    call: Call,
  ): Promise<void> => {
    try {
      // The adapter would answer it by itself, in plain text.
      if (request.method === 'OPTIONS') throw new HoldfastError('not_found');
      checkVersion(request, target.query);
      const body = await readJson(request, limits, [JSON_TYPE, A2A_TYPE]);
      const params = request.method === 'POST' && SEND.test(target.path) ? readSend(body, call) : undefined;
      const stream = streamOf(request, target.path, params, call);
      if (stream !== null) {
        const toError = (error: unknown) => toRestBody(toWireError(call.error ?? error));
        const toData = (event: StreamResponse) => StreamResponse.toJSON(event) as object;
        await sendEvents(response, stream, call.signal, toData, toError);
        return;
      }
      calls.set(request, call);
      const query = target.query.size === 0 ? '' : `?${target.query}`;
      // The adapter compares versions to the letter, and parses only what nobody has parsed before it.
      request.headers['a2a-version'] = A2A_VERSION;
      request.url = `${encodeURI(target.path)}${query}`;
      (request as IncomingMessage & { body?: unknown }).body = params ?? body;
      response.setHeader('cache-control', 'no-store');
      response.setHeader('x-content-type-options', 'nosniff');
      adapter(request, response);
    } catch (error) {
      call.error ??= error;
      sendError(response, 'rest', toWireError(call.error));
    }
  };
}
