import { createPrivateKey, sign } from 'node:crypto';
import {
  base64url,
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  SignJWT,
} from 'jose';
import { type Clock, HoldfastError, newId, normalizeAgentUrl } from '../core/index.js';
import type { NodeIdentity } from './model.js';

export const TOKEN_LIFETIME_SECONDS = 300;
/** A token is replaced this long before it ends, so that none expires on its way. */
const RENEW_BEFORE_SECONDS = 60;
export const RECEIPT_TYPE = 'holdfast-receipt+jwt';

/** A new Ed25519 key as a private JWK, to be kept in a file only its owner can read. */
export async function generateNodeKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  return exportJWK(privateKey);
}

/**
 * The node's identity from its private JWK.
 * @throws config_invalid when the key is not a private Ed25519 JWK
 */
export async function createNodeIdentity(options: {
  url: string;
  privateJwk: JWK;
  clock: Clock;
}): Promise<NodeIdentity> {
  const { kty, crv, x, d } = options.privateJwk;
  if (kty !== 'OKP' || crv !== 'Ed25519' || !x || !d) {
    throw new HoldfastError('config_invalid', 'The node key is not a private Ed25519 JWK.');
  }
  const url = normalizeAgentUrl(options.url);
  const publicJwk: JWK = { kty, crv, x };
  const thumbprint = await calculateJwkThumbprint(publicJwk, 'sha256');
  const key = (await importJWK({ kty, crv, x, d }, 'EdDSA')) as CryptoKey;
  const receiptKey = createPrivateKey({ key: { kty, crv, x, d }, format: 'jwk' });
  const receiptHeader = base64url.encode(
    JSON.stringify({ alg: 'EdDSA', kid: thumbprint, typ: RECEIPT_TYPE }),
  );
  const tokens = new Map<string, { token: string; renewAt: number }>();

  return {
    url,
    thumbprint,
    jwks: () => ({ keys: [{ ...publicJwk, kid: thumbprint, alg: 'EdDSA', use: 'sig' }] }),
    async tokenFor(audience) {
      const now = Math.floor(options.clock.now().getTime() / 1000);
      const held = tokens.get(audience);
      if (held && now < held.renewAt) return held.token;
      const token = await new SignJWT({})
        .setProtectedHeader({ alg: 'EdDSA', kid: thumbprint, typ: 'JWT' })
        .setIssuer(url)
        .setSubject(url)
        .setAudience(audience)
        .setIssuedAt(now)
        .setExpirationTime(now + TOKEN_LIFETIME_SECONDS)
        .setJti(newId('jwt'))
        .sign(key);
      tokens.set(audience, { token, renewAt: now + TOKEN_LIFETIME_SECONDS - RENEW_BEFORE_SECONDS });
      return token;
    },
    async signReceipt(claims) {
      // Here and now: to hand so short a piece of work to the thread pool and back costs more than twice the signature.
      const input = `${receiptHeader}.${base64url.encode(JSON.stringify(claims))}`;
      return `${input}.${base64url.encode(sign(null, Buffer.from(input), receiptKey))}`;
    },
  };
}
