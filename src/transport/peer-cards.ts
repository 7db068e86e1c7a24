import {
  HoldfastError,
  isJsonObject,
  isWithin,
  type JsonObject,
  type JsonValue,
  type Limits,
  parseStrictJson,
} from '../core/index.js';
import { AGENT_CARD_PATH } from '../protocol/index.js';
import type { GuardedFetch } from './guarded-fetch.js';

/** Longest a card is believed without asking again, whatever its Cache-Control says. */
const MAX_FRESH_MS = 5 * 60_000;

interface CachedCard {
  readonly card: JsonObject;
  readonly etag: string | null;
  fetchedAt: number;
  freshMs: number;
}

function freshnessMs(cacheControl: string | undefined): number {
  if (cacheControl === undefined || /\bno-(?:store|cache)\b/i.test(cacheControl)) return 0;
  const seconds = /\bmax-age=(\d{1,9})\b/i.exec(cacheControl)?.[1];
  return Math.min(Number(seconds ?? 0) * 1000, MAX_FRESH_MS);
}

const unusable = (message: string, cause?: unknown) => new HoldfastError('peer_error', message, { cause });

/** Agent Cards of peers, in memory: fresh for as long as the peer says (within bounds), then revalidated by ETag. */
export function createCardCache(guarded: GuardedFetch, limits: Limits) {
  const cards = new Map<string, CachedCard>();

  async function load(peerUrl: string): Promise<JsonObject> {
    const known = cards.get(peerUrl);
    const answer = await guarded.request(`${peerUrl}${AGENT_CARD_PATH}`, {
      headers: {
        accept: 'application/json',
        ...(known?.etag == null ? {} : { 'if-none-match': known.etag }),
      },
      maxBytes: limits.maxPeerAnswerBytes,
      timeoutMs: limits.peerTimeoutMs,
    });
    const fresh = { fetchedAt: Date.now(), freshMs: freshnessMs(answer.headers['cache-control']) };
    const bytes = await answer.bytes();
    if (answer.status === 304 && known !== undefined) {
      Object.assign(known, fresh);
      return known.card;
    }
    if (answer.status !== 200) throw unusable('The peer serves no Agent Card.');
    let card: JsonValue;
    try {
      card = parseStrictJson(bytes, limits);
    } catch (error) {
      throw unusable("The peer's Agent Card is not JSON.", error);
    }
    if (!isJsonObject(card)) throw unusable("The peer's Agent Card is not an object.");
    cards.set(peerUrl, { card, etag: answer.headers.etag ?? null, ...fresh });
    return card;
  }

  return {
    /** @throws url_forbidden, peer_unreachable, outcome_unknown, peer_error */
    get: async (peerUrl: string): Promise<JsonObject> => {
      const known = cards.get(peerUrl);
      return known && isWithin(known.freshMs, known.fetchedAt, Date.now()) ? known.card : load(peerUrl);
    },
  };
}
