import type { JWK } from 'jose';
import type { Principal } from './principal.js';

/** A configured peer: who it is, by which key it is known, and what may pass between us. */
export interface Peer {
  readonly url: string;
  /** RFC 7638 SHA-256 thumbprint of its signing key, base64url; pinned, so that a changed key stops everything. */
  readonly key: string;
  /** Thumbprint of the key that the peer is about to sign with; accepted beside `key`. */
  readonly nextKey?: string;
  readonly tenant: string;
  /** `name/version` of contracts that may pass between us, in either direction. */
  readonly contracts: readonly string[];
  /** Skills: the peer's that we may use, and ours that it may use. */
  readonly skills: readonly string[];
}

export interface PeerDirectory {
  /** By normalized URL. */
  find(url: string): Peer | null;
  list(): readonly Peer[];
}

/** Where the public keys of a peer come from; an implementation caches and bounds what it fetches. */
export interface PeerKeySource {
  /** @throws peer_unreachable */
  keysOf(peerUrl: string, options?: { refresh?: boolean }): Promise<readonly JWK[]>;
}

/** This node as others know it. */
export interface NodeIdentity {
  readonly url: string;
  readonly thumbprint: string;
  /** The key it is about to use, and those it used before, newest first, by thumbprint. */
  readonly nextThumbprint: string | null;
  readonly retired: readonly { readonly thumbprint: string; readonly retiredAt: string }[];
  /** The public key that it signs with. */
  readonly publicKey: JWK;
  /** What the JWKS endpoint serves: `{ keys: [...] }`, public parts only. */
  jwks(): { keys: JWK[] };
  /** A short-lived JWT for one audience; reused until a minute before it expires. */
  tokenFor(audience: string): Promise<string>;
  /** A compact JWS over the claims, `typ: holdfast-receipt+jwt`. */
  signReceipt(claims: Record<string, unknown>): Promise<string>;
  /** A compact JWS over any other statement of this node, under the given `typ`; the public key stands in its header. */
  sign(typ: string, claims: Record<string, unknown>): Promise<string>;
}

export interface Authenticator {
  /**
   * Who sent a request with this `Authorization` header.
   * @throws unauthenticated whatever is wrong with it: the caller learns no more
   */
  authenticate(authorization: string | undefined): Promise<Principal>;
}
