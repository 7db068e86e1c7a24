import { base64url, type CryptoKey, calculateJwkThumbprint, importJWK, type JWK } from 'jose';
import { HoldfastError } from '../core/index.js';
import type { Peer, PeerKeySource } from './model.js';

/** Algorithms we accept, by the key and never by what a token's header claims. */
function algorithmOf(jwk: JWK): 'EdDSA' | 'ES256' | null {
  if (jwk.kty === 'OKP' && jwk.crv === 'Ed25519') return 'EdDSA';
  if (jwk.kty === 'EC' && jwk.crv === 'P-256') return 'ES256';
  return null;
}

/** Key sets come from outside: a key without its members is none, and must not hide the others. */
async function thumbprintOf(jwk: JWK): Promise<string | null> {
  try {
    return await calculateJwkThumbprint(jwk, 'sha256');
  } catch {
    return null;
  }
}

/**
 * Whether a compact JWS is written in the only way its bytes can be: decoders ignore the last bits of a part, so that a text
 * could be changed under a signature that stays good.
 */
export function isInOneSpelling(compact: string): boolean {
  return compact.split('.').every((part) => base64url.encode(base64url.decode(part)) === part);
}

export interface PinnedKey {
  readonly jwk: JWK;
  readonly key: CryptoKey;
  readonly algorithm: 'EdDSA' | 'ES256';
}

/**
 * The one key of a peer that the configuration pins. Its key set is read again once when the pinned key is not in it, since a
 * peer that has just started may have been asked too early.
 * @throws peer_key_mismatch, peer_unreachable
 */
export async function pinnedKeyOf(peer: Peer, keys: PeerKeySource): Promise<PinnedKey> {
  for (const refresh of [false, true]) {
    for (const jwk of await keys.keysOf(peer.url, { refresh })) {
      const algorithm = algorithmOf(jwk);
      if (!algorithm) continue;
      const { kty, crv, x, y } = jwk;
      const publicJwk = { kty, crv, x, ...(y === undefined ? {} : { y }) } as JWK;
      if ((await thumbprintOf(publicJwk)) !== peer.key) continue;
      return { jwk: publicJwk, key: (await importJWK(publicJwk, algorithm)) as CryptoKey, algorithm };
    }
  }
  throw new HoldfastError(
    'peer_key_mismatch',
    `The key configured for ${peer.url} is not among the keys it serves. Check the thumbprint with the peer's operator.`,
    { data: { peer: peer.url, configured: peer.key } },
  );
}
