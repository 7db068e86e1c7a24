import type { IncomingMessage } from 'node:http';
import { ContentTypeNotSupportedError } from '@a2a-js/sdk/errors';
import { HoldfastError, type JsonValue, type Limits, parseStrictJson } from '../core/index.js';
import { bareMediaType } from '../protocol/index.js';

const tooLarge = (maxBytes: number) => new HoldfastError('body_too_large', undefined, { data: { maxBytes } });

async function readBytes(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Buffer[] = [];
  let received = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    received += chunk.byteLength;
    if (received > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * The whole body, of one of these types. Read here, so that no parser of a framework sets the limits.
 *
 * @throws body_too_large, ContentTypeNotSupportedError
 */
export async function readBody(
  request: IncomingMessage,
  limits: Limits,
  mediaTypes: readonly string[],
): Promise<Uint8Array> {
  const { 'content-type': type, 'content-encoding': encoding } = request.headers;
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new ContentTypeNotSupportedError('An encoded body is not accepted.');
  }
  if (type === undefined || !mediaTypes.includes(bareMediaType(type)) || !/^[\w.+/-]+\s*(?:;|$)/.test(type)) {
    throw new ContentTypeNotSupportedError(`The body must be ${mediaTypes.join(' or ')}.`);
  }
  return readBytes(request, limits.maxBodyBytes);
}

/**
 * The whole body as strict JSON; `undefined` where there is none.
 *
 * @throws body_too_large, json_invalid, json_too_complex, ContentTypeNotSupportedError
 */
export async function readJson(
  request: IncomingMessage,
  limits: Limits,
  mediaTypes: readonly string[],
): Promise<JsonValue | undefined> {
  if (!hasBody(request)) return undefined;
  const bytes = await readBody(request, limits, mediaTypes);
  return bytes.byteLength === 0 ? undefined : parseStrictJson(bytes, limits);
}
