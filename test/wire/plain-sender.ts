/**
 * A sender as another company would write it: from `docs/wire.md` and the JSON Schemas alone, with nothing but `fetch`, `node:crypto`
 * and `node:http`. It imports neither this package nor an A2A or JOSE library, and must stay so: it shows that the page is enough.
 */
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  randomUUID,
  sign,
  verify,
} from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

const EXTENSION = 'urn:holdfast:handoff:v2';
export const ENVELOPE = 'application/vnd.holdfast.handoff.v2+json';
export const RECEIPT = 'application/vnd.holdfast.receipt.v1+json';
export const REJECTION = 'application/vnd.holdfast.rejection.v1+json';
export const CONTROL = 'application/vnd.holdfast.control.v1+json';

export type Binding = 'JSON-RPC' | 'HTTP+JSON';
export type Alg = 'EdDSA' | 'ES256';
// biome-ignore lint/suspicious/noExplicitAny: what comes over the wire is checked where it is used
export type Json = any;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json;
}

export interface Reference {
  readonly url: string;
  readonly media_type: string;
  readonly filename: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly artifact_id: string;
  readonly version: number;
  readonly expires_at: string;
}

export interface CallOptions {
  /** Instead of a token of this sender; `null` sends none. */
  readonly token?: string | null;
  /** `null` leaves A2A-Version out. */
  readonly version?: string | null;
}

export interface PlainSender {
  readonly url: string;
  readonly hostAndPort: string;
  readonly thumbprint: string;
  /** Who fetched evidence, by the token it showed. */
  readonly fetchedBy: (string | undefined)[];
  token(audience: string, claims?: Record<string, unknown>): string;
  host(bytes: Buffer, filename: string, mediaType: string): Reference;
  send(agent: string, binding: Binding, message: string, options?: CallOptions): Promise<Answer>;
  getTask(agent: string, binding: Binding, id: string): Promise<Answer>;
  close(): Promise<void>;
}

const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');
const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const fromBase64url = (text = ''): Json => JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));

/** RFC 8785: JavaScript already writes numbers and strings as it asks; only the keys have to be sorted, by UTF-16 unit. */
function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
  return `{${members.join(',')}}`;
}

export const digestOf = (envelope: Json): string => sha256(canonicalJson(envelope));

/** RFC 7638. */
function thumbprintOf({ kty, crv, x, y }: JsonWebKey): string {
  const members = kty === 'OKP' ? { crv, kty, x } : { crv, kty, x, y };
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url');
}

function signJws(alg: Alg, key: KeyObject, header: object, payload: object): string {
  const input = `${base64url({ alg, ...header })}.${base64url(payload)}`;
  const data = Buffer.from(input);
  const signature =
    alg === 'EdDSA' ? sign(null, data, key) : sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

/** The payload of a compact JWS that the key of the agent at `issuer`, known by its thumbprint, has signed. */
async function verifyJws(jws: string, typ: string, issuer: string, thumbprint: string): Promise<Json> {
  const { keys } = (await (await fetch(`${issuer}/.well-known/jwks.json`)).json()) as { keys: JsonWebKey[] };
  const jwk = keys.find((key) => thumbprintOf(key) === thumbprint);
  if (jwk === undefined) throw new Error('the key with the known thumbprint is not served');
  const [head, body, signature] = jws.split('.');
  const header = fromBase64url(head);
  if (header.typ !== typ) throw new Error(`typ is ${header.typ}`);
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  const data = Buffer.from(`${head}.${body}`);
  const bytes = Buffer.from(signature ?? '', 'base64url');
  const expected: Alg = jwk.kty === 'OKP' ? 'EdDSA' : 'ES256';
  if (header.alg !== expected) throw new Error(`alg is ${header.alg}`);
  const good =
    expected === 'EdDSA'
      ? verify(null, data, key, bytes)
      : verify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, bytes);
  if (!good) throw new Error('the signature is wrong');
  return fromBase64url(body);
}

/** What section 6 asks before a sender may let go. Answers the receipt's payload. */
export async function verifyReceipt(part: Json, envelope: Json, thumbprint: string): Promise<Json> {
  const { to_agent } = envelope;
  const payload = await verifyJws(part.receipt, 'holdfast-receipt+jwt', to_agent, thumbprint);
  const expected: Json = {
    iss: to_agent,
    root: envelope.root,
    case_id: envelope.case_id,
    handoff_id: envelope.handoff_id,
    attempt: envelope.attempt,
    from_agent: envelope.from_agent,
    to_agent,
    old_epoch: envelope.epoch,
    new_epoch: envelope.epoch + 1,
    digest: digestOf(envelope),
  };
  for (const [name, value] of Object.entries(expected)) {
    if (payload[name] !== value) throw new Error(`${name} of the receipt is ${payload[name]}, not ${value}`);
  }
  return payload;
}

/** The message of section 4, as the text that goes on the wire: a resend sends this text again. */
export function messageOf(envelope: Json, more: Json = {}): string {
  const evidence = envelope.references.map((reference: Reference) => ({
    url: reference.url,
    mediaType: reference.media_type,
    filename: reference.filename,
    metadata: {
      sha256: reference.sha256,
      bytes: reference.bytes,
      artifactId: reference.artifact_id,
      version: reference.version,
      expiresAt: reference.expires_at,
    },
  }));
  return JSON.stringify({
    messageId: `${envelope.handoff_id}:${envelope.attempt}`,
    role: 'ROLE_USER',
    extensions: [EXTENSION],
    parts: [
      { text: `Handoff of ${envelope.case_id} under ${envelope.contract}.` },
      { mediaType: ENVELOPE, data: envelope },
      ...evidence,
    ],
    ...more,
  });
}

/** The control message of section 9, as text. */
export function controlOf(document: Json, more: Json = {}): string {
  const parts = [{ mediaType: CONTROL, data: document }];
  return JSON.stringify({ messageId: randomUUID(), role: 'ROLE_USER', parts, ...more });
}

/** The document that answers a control message. */
export function controlIn({ body }: Answer): Json {
  const { message } = body.result ?? body;
  if (message?.role !== 'ROLE_AGENT' || message.parts.length !== 1) throw new Error(JSON.stringify(body));
  if (message.parts[0].mediaType !== CONTROL) throw new Error(`the part is ${message.parts[0].mediaType}`);
  return message.parts[0].data;
}

/** The task in the answer to a send or to a GetTask. */
export function taskIn({ body }: Answer): Json {
  const result = body.result ?? body;
  return result.task ?? result;
}

/** The decision in the task's one artifact. */
export function decisionIn(answer: Answer): Json {
  const [artifact, ...others] = taskIn(answer).artifacts;
  if (others.length > 0 || artifact.parts.length !== 1) throw new Error('not exactly one decision');
  return { mediaType: artifact.parts[0].mediaType, ...artifact.parts[0].data };
}

/** The ErrorInfo of section 8, and `undefined` where the answer is no error. */
export function errorInfoIn({ body }: Answer): Json {
  const entries = body.error?.data ?? body.error?.details ?? [];
  return entries.find((entry: Json) => entry['@type'] === 'type.googleapis.com/google.rpc.ErrorInfo');
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === '' ? null : JSON.parse(text),
  };
}

export async function startPlainSender(alg: Alg = 'EdDSA', path = '/agents/plain'): Promise<PlainSender> {
  const { publicKey, privateKey } =
    alg === 'EdDSA' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = publicKey.export({ format: 'jwk' });
  const evidence = new Map<string, { bytes: Buffer; mediaType: string }>();
  const fetchedBy: (string | undefined)[] = [];

  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://here');
    if (pathname === `${path}/.well-known/jwks.json`) {
      response.setHeader('content-type', 'application/json');
      return response.end(JSON.stringify({ keys: [jwk] }));
    }
    const found = evidence.get(pathname);
    if (found === undefined) return response.writeHead(404).end();
    fetchedBy.push(issuerOf(request));
    response.setHeader('content-type', found.mediaType);
    return response.end(found.bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const hostAndPort = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `http://${hostAndPort}${path}`;
  const thumbprint = thumbprintOf(jwk);

  function token(audience: string, claims: Record<string, unknown> = {}): string {
    const now = Math.floor(Date.now() / 1000);
    const payload = { iss: url, sub: url, aud: audience, iat: now, exp: now + 120, jti: randomUUID() };
    return signJws(alg, privateKey, { typ: 'JWT', kid: thumbprint }, { ...payload, ...claims });
  }

  function headersFor(agent: string, { token: given, version = '1.0' }: CallOptions): Record<string, string> {
    const bearer = given === undefined ? token(agent) : given;
    return {
      'content-type': 'application/json',
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...(version === null ? {} : { 'a2a-version': version }),
    };
  }

  async function rpc(agent: string, method: string, params: string, options: CallOptions): Promise<Answer> {
    const body = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`;
    return answerOf(
      await fetch(`${agent}/a2a`, { method: 'POST', headers: headersFor(agent, options), body }),
    );
  }

  return {
    url,
    hostAndPort,
    thumbprint,
    fetchedBy,
    token,
    host(bytes, filename, mediaType) {
      const artifactId = `art-${randomBytes(6).toString('hex')}`;
      const at = `${path}/evidence/${artifactId}/1`;
      evidence.set(at, { bytes, mediaType });
      return {
        url: `http://${hostAndPort}${at}`,
        media_type: mediaType,
        filename,
        bytes: bytes.length,
        sha256: sha256(bytes),
        artifact_id: artifactId,
        version: 1,
        expires_at: new Date(Date.now() + 7_200_000).toISOString(),
      };
    },
    async send(agent, binding, message, options = {}) {
      if (binding === 'JSON-RPC') return rpc(agent, 'SendMessage', `{"message":${message}}`, options);
      const headers = headersFor(agent, options);
      const body = `{"message":${message}}`;
      return answerOf(await fetch(`${agent}/a2a/rest/message:send`, { method: 'POST', headers, body }));
    },
    async getTask(agent, binding, id) {
      if (binding === 'JSON-RPC') return rpc(agent, 'GetTask', JSON.stringify({ id }), {});
      return answerOf(await fetch(`${agent}/a2a/rest/tasks/${id}`, { headers: headersFor(agent, {}) }));
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Whose token came along: enough for a test to see that the receiver fetches under its own name. */
function issuerOf({ headers }: IncomingMessage): string | undefined {
  const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
  return token === undefined ? undefined : fromBase64url(token.split('.')[1]).iss;
}
