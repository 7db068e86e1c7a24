/** Bounds on what a peer may send. Every one is configurable; each default says what it protects. */
export interface Limits {
  /** HTTP body, bytes. */
  readonly maxBodyBytes: number;
  /** One envelope as JSON, bytes. */
  readonly maxEnvelopeBytes: number;
  /** Nesting of JSON, levels. Far below where JSON.stringify overflows the stack. */
  readonly maxDepth: number;
  /** Values in one JSON document, counted before anything is built. */
  readonly maxNodes: number;
  /** One JSON string, bytes of UTF-8. */
  readonly maxStringBytes: number;
  /** Object keys, bytes of UTF-8. */
  readonly maxKeyBytes: number;
  /** One referenced piece of evidence, bytes. */
  readonly maxEvidenceBytes: number;
  /** All of one fetch of evidence, milliseconds. */
  readonly evidenceTimeoutMs: number;
  /** One answer of a peer to a card, key set or message, bytes. */
  readonly maxPeerAnswerBytes: number;
  /** One request to a peer, milliseconds. */
  readonly peerTimeoutMs: number;
  /** Requests per peer and minute; more are `rate_limited`. */
  readonly peerRequestsPerMinute: number;
}

export const DEFAULT_LIMITS: Limits = {
  maxBodyBytes: 1024 * 1024,
  maxEnvelopeBytes: 64 * 1024,
  maxDepth: 32,
  maxNodes: 10_000,
  maxStringBytes: 256 * 1024,
  maxKeyBytes: 256,
  maxEvidenceBytes: 25 * 1024 * 1024,
  evidenceTimeoutMs: 30_000,
  maxPeerAnswerBytes: 1024 * 1024,
  peerTimeoutMs: 30_000,
  peerRequestsPerMinute: 6_000,
};
