import { compactVerify, decodeJwt, decodeProtectedHeader, type JWK } from 'jose';
import { HoldfastError } from '../core/index.js';
import { parseReceiptClaims, type ReceiptClaims } from '../envelope/index.js';
import { RECEIPT_TYPE } from './identity.js';
import { isInOneSpelling, type PeerKey, receiptKeysOf } from './keys.js';
import type { Peer, PeerKeySource } from './model.js';

/**
 * Verifies the signature of a receipt with a key of the peer, which may be retired by now, and reads its claims; what they must say is
 * the sender's to check.
 * @throws receipt_invalid, peer_key_mismatch, peer_unreachable
 */
export async function verifyReceipt(
  receipt: string,
  peer: Peer,
  keys: PeerKeySource,
): Promise<{ claims: ReceiptClaims; key: JWK }> {
  let failure: unknown;
  for (const by of await receiptKeysOf(peer, keys, kidOf(receipt))) {
    try {
      return { claims: await verifyWith(by, receipt), key: by.jwk };
    } catch (error) {
      failure = error;
    }
  }
  throw new HoldfastError('receipt_invalid', 'The receipt does not verify with the key of the peer.', {
    cause: failure,
  });
}

/** Who says to have issued a receipt, before anything of it is verified: it says only whose key is to be looked for. */
export function issuerOf(receipt: string): string | null {
  try {
    const { iss } = decodeJwt(receipt);
    return typeof iss === 'string' ? iss : null;
  } catch {
    return null;
  }
}

async function verifyWith(by: PeerKey, receipt: string): Promise<ReceiptClaims> {
  if (!isInOneSpelling(receipt)) throw new Error('the receipt has a second spelling');
  const { payload, protectedHeader } = await compactVerify(receipt, by.key, { algorithms: [by.algorithm] });
  if (protectedHeader.typ !== RECEIPT_TYPE) throw new Error('typ is not a receipt');
  return parseReceiptClaims(JSON.parse(new TextDecoder().decode(payload)));
}

/** A hint only: it says when to look for a new key set. */
function kidOf(receipt: string): string {
  try {
    return decodeProtectedHeader(receipt).kid ?? '';
  } catch {
    return '';
  }
}
