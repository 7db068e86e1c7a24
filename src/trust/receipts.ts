import { compactVerify, type JWK } from 'jose';
import { HoldfastError } from '../core/index.js';
import { parseReceiptClaims, type ReceiptClaims } from '../envelope/index.js';
import { RECEIPT_TYPE } from './identity.js';
import { isInOneSpelling, pinnedKeyOf } from './keys.js';
import type { Peer, PeerKeySource } from './model.js';

/**
 * Verifies the signature of a receipt with the peer's pinned key and reads its claims; what they must say is the sender's to check.
 * @throws receipt_invalid, peer_key_mismatch, peer_unreachable
 */
export async function verifyReceipt(
  receipt: string,
  peer: Peer,
  keys: PeerKeySource,
): Promise<{ claims: ReceiptClaims; key: JWK }> {
  const pinned = await pinnedKeyOf(peer, keys);
  try {
    if (!isInOneSpelling(receipt)) throw new Error('the receipt has a second spelling');
    const { payload, protectedHeader } = await compactVerify(receipt, pinned.key, {
      algorithms: [pinned.algorithm],
    });
    if (protectedHeader.typ !== RECEIPT_TYPE) throw new Error('typ is not a receipt');
    const claims = parseReceiptClaims(JSON.parse(new TextDecoder().decode(payload)));
    return { claims, key: pinned.jwk };
  } catch (cause) {
    throw new HoldfastError('receipt_invalid', 'The receipt does not verify with the key of the peer.', {
      cause,
    });
  }
}
