import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { HoldfastError, type JsonObject, sha256Hex } from '../core/index.js';
import {
  type EvidenceArtifact,
  type EvidenceStore,
  sanitizeFilename,
  verifyEvidenceUrl,
} from '../evidence/index.js';
import type { Principal } from '../trust/index.js';
import { JSON_TYPE, sendJson } from './respond.js';

type Route = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

export interface PublicRouteOptions {
  readonly card: JsonObject;
  readonly jwks: () => object;
  readonly health: () => Promise<object>;
}

/** What anyone may read, without authentication: who this agent is, by which keys, and whether it is well. */
export function createPublicRoutes({ card, jwks, health }: PublicRouteOptions) {
  const cardBytes = Buffer.from(JSON.stringify(card));
  const etag = `"${sha256Hex(cardBytes).slice(0, 32)}"`;

  const serveCard: Route = async (request, response) => {
    const headers = { etag, 'cache-control': 'public, max-age=60', 'x-content-type-options': 'nosniff' };
    const known = request.headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
    if (known?.includes(etag) || known?.includes('*')) {
      response.writeHead(304, headers).end();
      return;
    }
    response.writeHead(200, {
      ...headers,
      'content-type': JSON_TYPE,
      'content-length': String(cardBytes.byteLength),
    });
    response.end(cardBytes);
  };

  const serveKeys: Route = async (_request, response) =>
    sendJson(response, 200, jwks(), { 'cache-control': 'public, max-age=60' });

  const serveHealth: Route = async (_request, response) => sendJson(response, 200, await health());

  return { serveCard, serveKeys, serveHealth };
}

/** A file name as a header can carry it: ASCII for old readers, RFC 8187 for the rest. The store keeps names as they were given. */
function disposition(stored: string): string {
  const filename = sanitizeFilename(stored);
  const ascii = filename.replace(/[^\w.-]/g, '_');
  const encoded = encodeURIComponent(filename).replace(
    /[!'()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16)}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}

export interface EvidenceRouteOptions {
  readonly store: EvidenceStore;
  readonly secret: Uint8Array;
}

async function findGranted(
  { store, secret }: EvidenceRouteOptions,
  target: string,
  principal: Principal,
): Promise<EvidenceArtifact> {
  const grant = verifyEvidenceUrl(secret, target, new Date());
  if (grant === null || grant.audience !== principal.agent) throw new HoldfastError('not_found');
  const artifact = await store.find(grant.artifactId, grant.version);
  if (artifact === null || artifact.sha256 !== grant.sha256) throw new HoldfastError('not_found');
  if (artifact.revoked !== undefined) throw new HoldfastError('evidence_revoked');
  return artifact;
}

/**
 * One version of one artifact, to the agent it was signed for. Never shown in a browser, never cached.
 *
 * @throws not_found whatever is wrong with the URL, evidence_revoked
 */
export async function serveEvidence(
  options: EvidenceRouteOptions,
  request: IncomingMessage,
  response: ServerResponse,
  principal: Principal,
): Promise<void> {
  const artifact = await findGranted(options, request.url ?? '', principal);
  const content = options.store.open(artifact.sha256)[Symbol.asyncIterator]();
  // The first bytes before the headers: a file that is gone can still be answered properly.
  const first = await content.next();
  response.writeHead(200, {
    'content-type': artifact.mediaType,
    'content-length': String(artifact.bytes),
    'content-disposition': disposition(artifact.filename),
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  });
  if (request.method === 'HEAD') {
    await content.return?.();
    response.end();
    return;
  }
  await pipeline(async function* () {
    if (first.done) return;
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => content };
  }, response);
}
