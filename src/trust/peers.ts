import { HoldfastError, normalizeAgentUrl } from '../core/index.js';
import type { Peer, PeerDirectory } from './model.js';

/**
 * The configured peers, by normalized URL.
 * @throws config_invalid when one URL is configured twice
 */
export function createPeerDirectory(peers: readonly Peer[]): PeerDirectory {
  const byUrl = new Map<string, Peer>();
  for (const peer of peers) {
    const url = normalizeAgentUrl(peer.url);
    if (byUrl.has(url)) throw new HoldfastError('config_invalid', `The peer ${url} is configured twice.`);
    byUrl.set(url, { ...peer, url });
  }
  return { find: (url) => byUrl.get(url) ?? null, list: () => [...byUrl.values()] };
}

/** Whether the configuration lets this contract and skill pass between us and the peer. */
export function mayPass(peer: Peer, contract: string, skill: string): boolean {
  return peer.contracts.includes(contract) && peer.skills.includes(skill);
}
