import type { JWK } from 'jose';
import {
  type Clock,
  HoldfastError,
  isHoldfastError,
  isJsonObject,
  isWithin,
  type Limits,
  parseStrictJson,
  systemClock,
} from '../core/index.js';
import { JWKS_PATH } from '../protocol/index.js';
import type { PeerKeySource } from '../trust/index.js';
import type { GuardedFetch } from './guarded-fetch.js';

const MAX_KEYS = 16;
const CACHE_MS = 5 * 60_000;
/** Between two refreshes that a caller asks for: unknown key ids in forged tokens must not become requests to the peer. */
const COOLDOWN_MS = 10_000;
/** After a fetch that failed; short, because a peer that has just started should be heard soon. */
const FAILED_COOLDOWN_MS = 1_000;

interface PeerState {
  keys: readonly JWK[] | null;
  fetchedAt: number;
  failure: HoldfastError | null;
  failedAt: number;
  pending: Promise<readonly JWK[]> | null;
}

function readKeys(document: unknown): readonly JWK[] {
  const keys = (document as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys) || keys.length > MAX_KEYS) {
    throw new HoldfastError('peer_unreachable', 'The peer serves no key set that can be used.');
  }
  return keys.filter(isJsonObject) as JWK[];
}

/** Fetches key sets from where each peer serves them; cached, bounded, one fetch per peer at a time. */
export function createPeerKeySource(
  guarded: GuardedFetch,
  limits: Limits,
  clock: Clock = systemClock,
): PeerKeySource {
  const peers = new Map<string, PeerState>();

  async function fetchKeys(peerUrl: string): Promise<readonly JWK[]> {
    try {
      const answer = await guarded.request(`${peerUrl}${JWKS_PATH}`, {
        headers: { accept: 'application/json' },
        maxBytes: Math.min(limits.maxPeerAnswerBytes, 64 * 1024),
        timeoutMs: Math.min(limits.peerTimeoutMs, 10_000),
      });
      if (answer.status !== 200) {
        answer.discard();
        throw new HoldfastError('peer_unreachable', 'The peer serves no key set.');
      }
      return readKeys(parseStrictJson(await answer.bytes(), limits));
    } catch (error) {
      if (isHoldfastError(error) && error.code === 'peer_unreachable') throw error;
      const why = isHoldfastError(error) ? error.message : '';
      throw new HoldfastError(
        'peer_unreachable',
        `The key set of the peer could not be read. ${why}`.trim(),
        {
          cause: error,
        },
      );
    }
  }

  function refresh(peerUrl: string, state: PeerState): Promise<readonly JWK[]> {
    state.pending ??= fetchKeys(peerUrl)
      .then(
        (keys) => {
          state.keys = keys;
          state.fetchedAt = clock.now().getTime();
          state.failure = null;
          return keys;
        },
        (error: HoldfastError) => {
          state.failure = error;
          state.failedAt = clock.now().getTime();
          throw error;
        },
      )
      .finally(() => {
        state.pending = null;
      });
    return state.pending;
  }

  return {
    keysOf: async (peerUrl, options) => {
      let state = peers.get(peerUrl);
      if (state === undefined) {
        state = { keys: null, fetchedAt: 0, failure: null, failedAt: 0, pending: null };
        peers.set(peerUrl, state);
      }
      const now = clock.now().getTime();
      const keptMs = options?.refresh === true ? COOLDOWN_MS : CACHE_MS;
      if (state.keys !== null && isWithin(keptMs, state.fetchedAt, now)) return state.keys;
      if (state.failure !== null && isWithin(FAILED_COOLDOWN_MS, state.failedAt, now)) throw state.failure;
      return refresh(peerUrl, state);
    },
  };
}
