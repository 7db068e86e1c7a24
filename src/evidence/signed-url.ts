import { createHmac, timingSafeEqual } from 'node:crypto';
import { EVIDENCE_PATH } from '../protocol/index.js';

/** A day: longer than an offer plausibly waits to be fetched. */
export const DEFAULT_EVIDENCE_TTL_MS = 24 * 60 * 60 * 1000;

/** What a signed URL grants: one version of one artifact, to one agent, until a time. */
export interface EvidenceGrant {
  readonly artifactId: string;
  readonly version: number;
  readonly sha256: string;
  /** URL of the agent that may read. */
  readonly audience: string;
  readonly expiresAt: Date;
}

const PATH = new RegExp(`${EVIDENCE_PATH}/([A-Za-z0-9_-]{1,128})/([1-9][0-9]{0,9})$`);
const PARAMETERS = ['aud', 'exp', 'sha256', 'sig'];

function sign(secret: Uint8Array, grant: EvidenceGrant): string {
  const { artifactId, version, sha256, audience, expiresAt } = grant;
  const text = JSON.stringify([
    'holdfast-evidence-url-v1',
    artifactId,
    version,
    sha256,
    audience,
    expiresAt.getTime(),
  ]);
  return createHmac('sha256', secret).update(text).digest('base64url');
}

/** A URL that is itself the permission to read: treat its query as a secret. `exp` is in milliseconds since 1970. */
export function signEvidenceUrl(secret: Uint8Array, grant: EvidenceGrant & { baseUrl: string }): string {
  const { baseUrl, artifactId, version, sha256, audience, expiresAt } = grant;
  const query = new URLSearchParams({
    aud: audience,
    exp: String(expiresAt.getTime()),
    sha256,
    sig: sign(secret, grant),
  });
  return `${baseUrl}${EVIDENCE_PATH}/${artifactId}/${version}?${query}`;
}

/**
 * What a requested path and query grants now, or null. The caller still compares `audience` with the authenticated agent and
 * `sha256` with the artifact it is about to serve.
 */
export function verifyEvidenceUrl(
  secret: Uint8Array,
  pathAndQuery: string,
  now: Date,
): Omit<EvidenceGrant, 'expiresAt'> | null {
  const [path = '', search = '', ...more] = pathAndQuery.split('?');
  const [, artifactId, version] = PATH.exec(path) ?? [];
  const query = new URLSearchParams(search);
  const names = [...query.keys()].sort();
  if (artifactId === undefined || names.join() !== PARAMETERS.join() || more.length > 0) return null;
  const [audience, exp, sha256, sig] = PARAMETERS.map((name) => query.get(name) ?? '');
  if (audience === undefined || sha256 === undefined || !/^[1-9][0-9]{0,14}$/.test(exp ?? '')) return null;
  const grant = { artifactId, version: Number(version), sha256, audience, expiresAt: new Date(Number(exp)) };
  const expected = new TextEncoder().encode(sign(secret, grant));
  const given = new TextEncoder().encode(sig);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
  return grant.expiresAt > now ? { artifactId, version: grant.version, sha256, audience } : null;
}
