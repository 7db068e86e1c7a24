import { type Clock, HoldfastError, type Limits, systemClock } from '../core/index.js';
import type { Authenticator, Principal } from '../trust/index.js';

interface Bucket {
  tokens: number;
  at: number;
}

/** Who is asking, and whether it asks too often. Comes before anything of A2A is looked at. */
export class AuthGate {
  readonly #authenticator: Authenticator;
  readonly #perMinute: number;
  readonly #clock: Clock;
  /** Bounded by the configured peers: only an authenticated one gets a bucket. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(authenticator: Authenticator, limits: Limits, clock: Clock = systemClock) {
    this.#authenticator = authenticator;
    this.#perMinute = limits.peerRequestsPerMinute;
    this.#clock = clock;
  }

  /** @throws unauthenticated, rate_limited */
  async admit(authorization: string | undefined): Promise<Principal> {
    const principal = await this.#authenticator.authenticate(authorization);
    const key = JSON.stringify([principal.tenant, principal.agent]);
    const now = this.#clock.now().getTime();
    const bucket = this.#buckets.get(key) ?? { tokens: this.#perMinute, at: now };
    // A clock that was set back takes nothing away.
    const elapsed = Math.max(0, now - bucket.at);
    const refilled = bucket.tokens + (elapsed * this.#perMinute) / 60_000;
    const tokens = Math.min(this.#perMinute, refilled);
    this.#buckets.set(key, { tokens: tokens >= 1 ? tokens - 1 : tokens, at: now });
    if (tokens < 1) throw new HoldfastError('rate_limited');
    return principal;
  }
}
