import { createPrivateKey, type KeyObject, sign as signBytes } from 'node:crypto';
import { base64url, calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { type Clock, HoldfastError, isWithin, newId, normalizeAgentUrl } from '../core/index.js';
import { RETIRED_MEMBER, RETIRED_TYPE } from './keys.js';
import type { NodeIdentity } from './model.js';

export const TOKEN_LIFETIME_SECONDS = 300;
/** A token is replaced this long before it ends, so that none expires on its way. */
const RENEW_BEFORE_SECONDS = 60;
export const RECEIPT_TYPE = 'holdfast-receipt+jwt';
export const APPROVAL_TYPE = 'holdfast-approval+jwt';

/** A new Ed25519 key as a private JWK, to be kept in a file only its owner can read. */
export async function generateNodeKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  return exportJWK(privateKey);
}

/** A key that this node signed with before: its public part, and when another took its place (UTC). */
export interface RetiredKey {
  readonly jwk: JWK;
  readonly retiredAt: string;
}

/** Peers read at most 16 keys; older ones stay on file, and with the receipts they verified. */
const MAX_SERVED_RETIRED = 12;

/**
 * The node's identity from its private JWK. `nextJwk` is served so that peers can pin it before it is used; `retired` keys are served
 * for the receipts they signed, each marked by the key in use.
 * @throws config_invalid when a key is not a private Ed25519 JWK
 */
export async function createNodeIdentity(options: {
  url: string;
  privateJwk: JWK;
  nextJwk?: JWK | null;
  retired?: readonly RetiredKey[];
  clock: Clock;
}): Promise<NodeIdentity> {
  const url = normalizeAgentUrl(options.url);
  const current = await keyPairOf(options.privateJwk);
  const next = options.nextJwk ? await keyPairOf(options.nextJwk) : null;
  const { key, publicJwk, thumbprint } = current;
  const tokens = new Map<string, { token: string; issuedAt: number }>();

  const sign = async (typ: string, claims: Record<string, unknown>, header: object = {}) => {
    const parts = [{ alg: 'EdDSA', kid: thumbprint, typ, ...header }, claims];
    const input = parts.map((part) => base64url.encode(JSON.stringify(part))).join('.');
    // Here and now: to hand so short a piece of work to the thread pool and back costs more than twice the signature.
    return `${input}.${base64url.encode(signBytes(null, Buffer.from(input), key))}`;
  };

  const retired = await Promise.all(
    [...(options.retired ?? [])]
      .sort((a, b) => (a.retiredAt < b.retiredAt ? 1 : -1))
      .map(async ({ jwk, retiredAt }) => {
        const old = await calculateJwkThumbprint(jwk, 'sha256');
        const retired_at = Math.floor(Date.parse(retiredAt) / 1000);
        const mark = await sign(RETIRED_TYPE, { iss: url, thumbprint: old, retired_at });
        return { thumbprint: old, retiredAt, served: { ...served(jwk, old), [RETIRED_MEMBER]: mark } };
      }),
  );
  const keys = [
    served(publicJwk, thumbprint),
    ...(next === null ? [] : [served(next.publicJwk, next.thumbprint)]),
    ...retired.slice(0, MAX_SERVED_RETIRED).map((one) => one.served),
  ];

  return {
    url,
    thumbprint,
    publicKey: publicJwk,
    nextThumbprint: next?.thumbprint ?? null,
    retired: retired.map(({ served: _, ...one }) => one),
    jwks: () => ({ keys }),
    async tokenFor(audience) {
      const now = Math.floor(options.clock.now().getTime() / 1000);
      const held = tokens.get(audience);
      const reuse = TOKEN_LIFETIME_SECONDS - RENEW_BEFORE_SECONDS;
      if (held && isWithin(reuse, held.issuedAt, now)) return held.token;
      const token = await new SignJWT({})
        .setProtectedHeader({ alg: 'EdDSA', kid: thumbprint, typ: 'JWT' })
        .setIssuer(url)
        .setSubject(url)
        .setAudience(audience)
        .setIssuedAt(now)
        .setExpirationTime(now + TOKEN_LIFETIME_SECONDS)
        .setJti(newId('jwt'))
        .sign(key);
      tokens.set(audience, { token, issuedAt: now });
      return token;
    },
    signReceipt: (claims) => sign(RECEIPT_TYPE, claims),
    sign: (typ, claims) => sign(typ, claims, { jwk: publicJwk }),
  };
}

function served(jwk: JWK, thumbprint: string): JWK {
  return { ...jwk, kid: thumbprint, alg: 'EdDSA', use: 'sig' };
}

async function keyPairOf(jwk: JWK): Promise<{ key: KeyObject; publicJwk: JWK; thumbprint: string }> {
  const { kty, crv, x, d } = jwk;
  if (kty !== 'OKP' || crv !== 'Ed25519' || !x || !d) {
    throw new HoldfastError('config_invalid', 'The node key is not a private Ed25519 JWK.');
  }
  const publicJwk: JWK = { kty, crv, x };
  const key = createPrivateKey({ key: { kty, crv, x, d }, format: 'jwk' });
  return { key, publicJwk, thumbprint: await calculateJwkThumbprint(publicJwk, 'sha256') };
}
