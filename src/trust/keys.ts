import { base64url, type CryptoKey, calculateJwkThumbprint, compactVerify, importJWK, type JWK } from 'jose';
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

/** Marks a key of a key set as retired: a JWS of the key in use, which says which key it is and since when. */
export const RETIRED_MEMBER = 'urn:holdfast:retired';
export const RETIRED_TYPE = 'holdfast-retired-key+jwt';

export interface PeerKey {
  readonly jwk: JWK;
  readonly key: CryptoKey;
  readonly algorithm: 'EdDSA' | 'ES256';
  readonly thumbprint: string;
  /** The mark of a retired key, which verifies receipts only. */
  readonly retired: string | null;
}

/**
 * The keys of a peer that the configuration pins and that are in use. Its key set is read again once when none is in it, since a peer
 * that has just started may have been asked too early, or when it lacks the pinned key that a signature claims to be of.
 * @throws peer_key_mismatch, peer_unreachable
 */
export async function pinnedKeysOf(peer: Peer, keys: PeerKeySource, kid?: string): Promise<PeerKey[]> {
  for (const refresh of [false, true]) {
    const served = await servedKeysOf(peer, keys, refresh);
    const pinned = served.filter((key) => isPinned(peer, key) && key.retired === null);
    const wanted = kid !== undefined && isPinned(peer, { thumbprint: kid });
    const found = pinned.length > 0 && (!wanted || served.some(({ thumbprint }) => thumbprint === kid));
    if (found || (refresh && pinned.length > 0)) return pinned;
  }
  throw mismatch(peer);
}

/**
 * The keys that may have signed a receipt of the peer: those that are pinned, also when they are retired, and retired ones for which a
 * pinned key vouches.
 * @throws peer_key_mismatch, peer_unreachable
 */
export async function receiptKeysOf(peer: Peer, keys: PeerKeySource, kid: string): Promise<PeerKey[]> {
  let last: PeerKey[] = [];
  for (const refresh of [false, true]) {
    const served = await servedKeysOf(peer, keys, refresh);
    const pinned = served.filter((key) => isPinned(peer, key));
    const vouching = pinned.filter(({ retired }) => retired === null);
    const vouched = await Promise.all(
      served.map(async (key) => {
        if (key.retired === null || isPinned(peer, key)) return false;
        return (await Promise.all(vouching.map((by) => vouches(by, peer, key)))).includes(true);
      }),
    );
    last = [...pinned, ...served.filter((_, index) => vouched[index])];
    if (last.some(({ thumbprint }) => thumbprint === kid)) return last;
  }
  if (last.length === 0) throw mismatch(peer);
  return last;
}

/** Whether the key in use says of the other that it was the peer's. */
async function vouches(by: PeerKey, peer: Peer, key: PeerKey): Promise<boolean> {
  try {
    const { payload, protectedHeader } = await compactVerify(key.retired ?? '', by.key, {
      algorithms: [by.algorithm],
    });
    const { iss, thumbprint } = JSON.parse(new TextDecoder().decode(payload));
    return protectedHeader.typ === RETIRED_TYPE && iss === peer.url && thumbprint === key.thumbprint;
  } catch {
    return false;
  }
}

function isPinned(peer: Peer, { thumbprint }: Pick<PeerKey, 'thumbprint'>): boolean {
  return thumbprint === peer.key || thumbprint === peer.nextKey;
}

/** What a served key comes to. A source that keeps a key set gives the same objects again, and to import one costs as much as to verify. */
interface Known {
  readonly publicJwk: JWK;
  readonly thumbprint: Promise<string | null>;
  key?: Promise<CryptoKey | null>;
}
const known = new WeakMap<JWK, Known>();

function knownOf(jwk: JWK): Known {
  const before = known.get(jwk);
  if (before !== undefined) return before;
  const { kty, crv, x, y } = jwk;
  const publicJwk = { kty, crv, x, ...(y === undefined ? {} : { y }) } as JWK;
  const made: Known = { publicJwk, thumbprint: thumbprintOf(publicJwk) };
  known.set(jwk, made);
  return made;
}

async function servedKeysOf(peer: Peer, keys: PeerKeySource, refresh: boolean): Promise<PeerKey[]> {
  const found: PeerKey[] = [];
  for (const jwk of await keys.keysOf(peer.url, { refresh })) {
    const algorithm = algorithmOf(jwk);
    if (!algorithm) continue;
    const mark = (jwk as Readonly<Record<string, unknown>>)[RETIRED_MEMBER];
    const of = knownOf(jwk);
    const { publicJwk } = of;
    const thumbprint = await of.thumbprint;
    // Only those that can count are imported: a stranger's key need not even be one.
    if (thumbprint === null || !(isPinned(peer, { thumbprint }) || mark !== undefined)) continue;
    of.key ??= imported(publicJwk, algorithm);
    const key = await of.key;
    if (key === null) continue;
    const retired = mark === undefined ? null : String(mark);
    found.push({ jwk: publicJwk, key, algorithm, thumbprint, retired });
  }
  return found;
}

async function imported(jwk: JWK, algorithm: string): Promise<CryptoKey | null> {
  try {
    return (await importJWK(jwk, algorithm)) as CryptoKey;
  } catch {
    return null;
  }
}

function mismatch(peer: Peer): HoldfastError {
  return new HoldfastError(
    'peer_key_mismatch',
    `The key configured for ${peer.url} is not among the keys it serves. Check the thumbprint with the peer's operator.`,
    { data: { peer: peer.url, configured: peer.key } },
  );
}
