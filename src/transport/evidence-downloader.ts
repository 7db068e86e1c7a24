import { HoldfastError, isHoldfastError } from '../core/index.js';
import type { EvidenceDownloader } from '../evidence/index.js';
import { bareMediaType } from '../protocol/index.js';
import type { GuardedFetch } from './guarded-fetch.js';

const GONE = 410;

function toEvidenceError(error: unknown): unknown {
  if (!isHoldfastError(error) || error.code === 'evidence_revoked') return error;
  if (error.code === 'url_forbidden') {
    return new HoldfastError('evidence_forbidden', undefined, { data: error.data, cause: error });
  }
  if (error.data.reason === 'too_large')
    return new HoldfastError('evidence_too_large', undefined, { cause: error });
  return new HoldfastError('evidence_unreadable', undefined, { data: error.data, cause: error });
}

async function* mapped(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* body;
  } catch (error) {
    throw toEvidenceError(error);
  }
}

/**
 * Downloads references under this node's own identity. `authorizationFor` says which URLs get an `Authorization` header,
 * so that a token never goes to whoever a sender names.
 */
export function createEvidenceDownloader(
  guarded: GuardedFetch,
  authorizationFor: (url: string) => Promise<string | null>,
): EvidenceDownloader {
  return {
    download: async (url, limits) => {
      try {
        const authorization = await authorizationFor(url);
        const answer = await guarded.request(url, {
          ...limits,
          headers: authorization === null ? {} : { authorization },
        });
        if (answer.status !== 200) {
          answer.discard();
          if (answer.status === GONE) throw new HoldfastError('evidence_revoked');
          throw new HoldfastError('peer_error', 'The evidence was not served.', {
            data: { status: answer.status },
          });
        }
        const mediaType = bareMediaType(answer.headers['content-type'] ?? '') || null;
        return { mediaType, body: mapped(answer.body) };
      } catch (error) {
        throw toEvidenceError(error);
      }
    },
  };
}
