import type { ServerResponse } from 'node:http';
import { toRestBody, toRpcBody, type WireError } from './errors.js';

/** Which form an answer has: JSON-RPC's, or HTTP+JSON's, which every other route shares. */
export type Binding = 'json-rpc' | 'rest';

export const JSON_TYPE = 'application/json';
export const A2A_TYPE = 'application/a2a+json';

export function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return;
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    'content-type': JSON_TYPE,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
    'content-length': String(bytes.byteLength),
  });
  response.end(bytes);
}

/** An error in the form of its binding, with what HTTP adds to it. */
export function sendError(
  response: ServerResponse,
  binding: Binding,
  error: WireError,
  id: string | number | null = null,
): void {
  const headers: Record<string, string> = {};
  if (error.retryAfterSeconds !== undefined) headers['retry-after'] = String(error.retryAfterSeconds);
  if (error.http === 401) headers['www-authenticate'] = 'Bearer realm="holdfast"';
  // What is left of a body that was not read must not be taken for the next request.
  if (!response.req.complete) headers.connection = 'close';
  if (binding === 'json-rpc')
    sendJson(response, error.showHttp ? error.http : 200, toRpcBody(error, id), headers);
  else sendJson(response, error.http, toRestBody(error), { 'content-type': A2A_TYPE, ...headers });
}
