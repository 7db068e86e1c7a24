import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestMalformedError } from '@a2a-js/sdk/errors';
import { type A2ARequestHandler, JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server';
import { HoldfastError, isJsonObject, type JsonObject, type JsonValue, type Limits } from '../core/index.js';
import { faultPoint } from '../faults/index.js';
import { A2A_VERSION, parseMessage } from '../protocol/index.js';
import { readJson } from './body.js';
import { attachCall, type Call, CallUser } from './call.js';
import { toRpcBody, toWireError } from './errors.js';
import { activate, echoed, requestedExtensions } from './extensions.js';
import { checkVersion } from './request-checks.js';
import { JSON_TYPE, sendError, sendJson } from './respond.js';
import { sendEvents } from './sse.js';

type RpcId = string | number | null;
type RpcResponse = { error?: { code: number; message: string }; [key: string]: unknown };

const SENDS = ['SendMessage', 'SendStreamingMessage'];

interface RpcRequest {
  readonly id: RpcId;
  readonly method: string;
  readonly params: JsonValue | undefined;
}

/** An error of JSON-RPC itself, which has no class of its own in A2A. */
class InvalidRequestError extends HoldfastError {
  constructor(problem: string) {
    super('message_invalid', `Not a JSON-RPC 2.0 request: ${problem}.`);
  }
}

function readId(body: JsonValue | undefined): RpcId {
  const id = isJsonObject(body) ? body.id : null;
  return typeof id === 'string' || (typeof id === 'number' && Number.isInteger(id)) ? id : null;
}

function readRequest(body: JsonValue | undefined): RpcRequest {
  if (!isJsonObject(body)) throw new InvalidRequestError('it is not one object');
  if (body.jsonrpc !== '2.0') throw new InvalidRequestError('jsonrpc is not "2.0"');
  if (typeof body.method !== 'string') throw new InvalidRequestError('method is not a string');
  // A notification would be carried out without anybody learning how it ended.
  if (!Object.hasOwn(body, 'id')) throw new InvalidRequestError('it has no id');
  if (body.id !== null && readId(body) === null)
    throw new InvalidRequestError('id is no string or whole number');
  return { id: readId(body), method: body.method, params: body.params };
}

/** The parameters with the message as it was read strictly, so that the SDK's codec has nothing left to interpret. */
function readParams({ method, params }: RpcRequest, call: Call): JsonObject | undefined {
  if (params !== undefined && !isJsonObject(params))
    throw new RequestMalformedError('params must be an object');
  if (!SENDS.includes(method)) return params;
  if (params?.message === undefined) throw new RequestMalformedError('message is required');
  call.message = parseMessage(params.message);
  return { ...params, message: call.message as unknown as JsonObject };
}

/** The JSON-RPC binding: the SDK's transport handler between strict reading and our own answering. */
export function createJsonRpcBinding(handler: A2ARequestHandler, limits: Limits) {
  const transport = new JsonRpcTransportHandler(handler);

  function fail(response: ServerResponse, id: RpcId, error: unknown): void {
    const wire = toWireError(error);
    sendError(
      response,
      'json-rpc',
      error instanceof InvalidRequestError ? { ...wire, rpc: -32600 } : wire,
      id,
    );
  }

  return async (request: IncomingMessage, response: ServerResponse, query: URLSearchParams, call: Call) => {
    let id: RpcId = null;
    try {
      const body = await readJson(request, limits, [JSON_TYPE]);
      id = readId(body);
      checkVersion(request, query);
      const rpc = readRequest(body);
      const params = readParams(rpc, call);
      const context = attachCall(
        new ServerCallContext({
          user: new CallUser(call),
          requestedVersion: A2A_VERSION,
          requestedExtensions: requestedExtensions(request),
        }),
        call,
      );
      activate(context);
      const result = await transport.handle(
        { ...(body as JsonObject), ...(params === undefined ? {} : { params }) },
        context,
      );
      if (Symbol.asyncIterator in result) {
        const toError = (error: unknown) => toRpcBody(toWireError(call.error ?? error), id);
        await sendEvents(response, result, call.signal, (event) => event, toError);
        return;
      }
      const { error } = result as RpcResponse;
      if (error === undefined) {
        faultPoint('R4.before_answer');
        sendJson(response, 200, result, echoed(context));
        faultPoint('R4.after_answer');
      } else if (call.error !== undefined) fail(response, id, call.error);
      // Not from our handler: the SDK found no such method, or its codec could not make sense of the parameters.
      else if (error.code === -32603)
        fail(response, id, new RequestMalformedError('Invalid method parameters.'));
      else sendJson(response, 200, result);
    } catch (error) {
      call.error ??= error;
      fail(response, id, call.error);
    }
  };
}
