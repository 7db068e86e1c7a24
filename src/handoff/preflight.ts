import type { Contract } from '../contract/index.js';
import {
  HoldfastError,
  isHoldfastError,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from '../core/index.js';
import type { EnvelopeRegistry } from '../envelope/index.js';
import { EXTENSION_URI } from '../protocol/index.js';
import { mayPass, type Peer, type PeerKeySource, pinnedKeysOf } from '../trust/index.js';
import type { PeerClient } from './port.js';

/**
 * Whether the peer is who the configuration says and offers what this handover needs, found out before any intent is stored.
 * @throws peer_unreachable, peer_key_mismatch, peer_incompatible naming what is missing
 */
export async function checkPeer(
  peer: Peer,
  contract: Contract,
  deps: { client: PeerClient; keys: PeerKeySource; envelopes: EnvelopeRegistry },
): Promise<void> {
  checkPermitted(peer, contract);
  const card = await reach(peer, async () => {
    await pinnedKeysOf(peer, deps.keys);
    return deps.client.card(peer.url);
  });
  const { mediaType } = deps.envelopes;
  const extensions = list((card.capabilities as JsonObject | undefined)?.extensions);
  if (!extensions.some((extension) => extension.uri === EXTENSION_URI)) {
    throw incompatible(peer, `does not declare the extension ${EXTENSION_URI}`);
  }
  const skill = list(card.skills).find(({ id }) => id === contract.skill.id);
  if (!skill) throw incompatible(peer, `does not offer the skill ${contract.skill.id}`);
  const inputModes = Array.isArray(skill.inputModes) ? skill.inputModes : [];
  if (!inputModes.includes(mediaType)) {
    throw incompatible(peer, `does not take ${mediaType} for the skill ${contract.skill.id}`);
  }
}

/** Whether the configuration lets the peer have it; nobody is asked. @throws peer_incompatible */
export function checkPermitted(peer: Peer, contract: Contract): void {
  if (mayPass(peer, contract.id, contract.skill.id)) return;
  throw new HoldfastError(
    'peer_incompatible',
    `The configuration lets ${peer.url} have neither ${contract.id} nor its skill ${contract.skill.id}; see peers[].contracts and peers[].skills.`,
  );
}

async function reach<T>(peer: Peer, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (!isHoldfastError(cause) || cause.code !== 'peer_unreachable') throw cause;
    throw new HoldfastError(
      'peer_unreachable',
      `The agent at ${peer.url} cannot be reached: ${cause.message}`,
      {
        data: { peer: peer.url },
        cause,
      },
    );
  }
}

function incompatible(peer: Peer, problem: string): HoldfastError {
  return new HoldfastError('peer_incompatible', `The agent at ${peer.url} ${problem}.`, {
    data: { peer: peer.url },
  });
}

function list(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
