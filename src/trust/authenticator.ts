import { decodeJwt, decodeProtectedHeader, type JWTPayload, jwtVerify } from 'jose';
import { type Clock, HoldfastError, type Logger, sha256Hex } from '../core/index.js';
import { TOKEN_LIFETIME_SECONDS } from './identity.js';
import { isInOneSpelling, type PeerKey, pinnedKeysOf } from './keys.js';
import type { Authenticator, Peer, PeerDirectory, PeerKeySource } from './model.js';
import type { Principal } from './principal.js';

const MAX_TOKEN_CHARS = 4096;
const CLOCK_TOLERANCE_SECONDS = 60;
/** Verified tokens kept; the oldest leave first. A peer holds one token at a time, so this is far above need. */
const MAX_CACHED = 10_000;

interface Cached {
  readonly principal: Principal;
  readonly expiresAt: number;
  readonly pinnedKey: string;
}

/**
 * Verifies the peers' signed JWTs: a pinned key that is in use, our URL as audience, issuer = subject = a configured peer, at most five minutes of life.
 * A verified token is remembered by its SHA-256 until it expires or its peer is configured otherwise; verifying costs more than the rest of a request.
 */
export function createAuthenticator(options: {
  audience: string;
  peers: PeerDirectory;
  keys: PeerKeySource;
  clock: Clock;
  logger: Logger;
}): Authenticator {
  const cache = new Map<string, Cached>();

  async function verify(token: string): Promise<Cached> {
    if (!isInOneSpelling(token)) throw new Error('token has a second spelling');
    // The unverified issuer only selects the key; the signature then proves it.
    const claimed = decodeJwt(token).iss;
    const peer = claimed === undefined ? null : options.peers.find(claimed);
    if (!peer) throw new Error('issuer is not a configured peer');
    let failure: unknown;
    // While a peer changes its key two are pinned, and which of them it was is not for the token to say.
    for (const by of await pinnedKeysOf(peer, options.keys, decodeProtectedHeader(token).kid)) {
      try {
        return await verifyWith(by, token, peer);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  async function verifyWith(by: PeerKey, token: string, peer: Peer): Promise<Cached> {
    const { payload } = await jwtVerify(token, by.key, {
      algorithms: [by.algorithm],
      issuer: peer.url,
      subject: peer.url,
      audience: options.audience,
      typ: 'JWT',
      requiredClaims: ['exp', 'iat', 'sub', 'aud', 'jti'],
      // Refuses an issue still to come, too: its five minutes would begin whenever its maker likes.
      maxTokenAge: TOKEN_LIFETIME_SECONDS,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: options.clock.now(),
    });
    const { exp, jti } = checkedClaims(payload);
    return {
      principal: { agent: peer.url, tenant: peer.tenant, tokenId: jti },
      expiresAt: exp,
      pinnedKey: by.thumbprint,
    };
  }

  return {
    async authenticate(authorization) {
      const token = /^Bearer ([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)$/i.exec(
        authorization ?? '',
      )?.[1];
      if (!token || token.length > MAX_TOKEN_CHARS) throw new HoldfastError('unauthenticated');
      const fingerprint = sha256Hex(token);
      const held = cache.get(fingerprint);
      const now = options.clock.now().getTime() / 1000;
      if (held && now < held.expiresAt) {
        const peer = options.peers.find(held.principal.agent);
        const pinned = peer?.key === held.pinnedKey || peer?.nextKey === held.pinnedKey;
        if (pinned && peer?.tenant === held.principal.tenant) return held.principal;
      }
      cache.delete(fingerprint);
      let verified: Cached;
      try {
        verified = await verify(token);
      } catch (cause) {
        // Why it failed is for our operator; the caller learns only that it did.
        options.logger.warn({ reason: cause instanceof Error ? cause.message : 'unknown' }, 'token refused');
        throw new HoldfastError('unauthenticated', undefined, { cause });
      }
      if (cache.size >= MAX_CACHED) cache.delete(cache.keys().next().value as string);
      cache.set(fingerprint, verified);
      return verified.principal;
    },
  };
}

function checkedClaims(payload: JWTPayload): { exp: number; jti: string } {
  const { exp, iat, jti, aud } = payload;
  // Whoever else it is for could use it here.
  if (Array.isArray(aud) && aud.length !== 1) throw new Error('token has more than one audience');
  if (exp === undefined || iat === undefined || exp - iat > TOKEN_LIFETIME_SECONDS) {
    throw new Error('token lives longer than five minutes');
  }
  if (typeof jti !== 'string' || jti.length < 1 || jti.length > 128)
    throw new Error('jti is not a short string');
  return { exp, jti };
}
