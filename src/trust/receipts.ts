import { compactVerify, decodeJwt, decodeProtectedHeader, type JWK } from 'jose';
import { HoldfastError } from '../core/index.js';
import {
  type ApprovalClaims,
  parseApprovalClaims,
  parseReceiptClaims,
  type ReceiptClaims,
} from '../envelope/index.js';
import { APPROVAL_TYPE, RECEIPT_TYPE } from './identity.js';
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
  return verifyAs(RECEIPT_TYPE, receipt, parseReceiptClaims, peer, keys);
}

/** The same of an approval by a person of the peer. @throws receipt_invalid, peer_key_mismatch, peer_unreachable */
export async function verifyApproval(
  approval: string,
  peer: Peer,
  keys: PeerKeySource,
): Promise<ApprovalClaims> {
  return (await verifyAs(APPROVAL_TYPE, approval, parseApprovalClaims, peer, keys)).claims;
}

/** Whether it says to be an approval, before anything of it is verified. */
export function isApproval(jws: string): boolean {
  return headerOf(jws).typ === APPROVAL_TYPE;
}

async function verifyAs<T>(
  typ: string,
  jws: string,
  parse: (value: unknown) => T,
  peer: Peer,
  keys: PeerKeySource,
): Promise<{ claims: T; key: JWK }> {
  let failure: unknown;
  for (const by of await receiptKeysOf(peer, keys, headerOf(jws).kid ?? '')) {
    try {
      return { claims: parse(await payloadOf(by, typ, jws)), key: by.jwk };
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

async function payloadOf(by: PeerKey, typ: string, jws: string): Promise<unknown> {
  if (!isInOneSpelling(jws)) throw new Error('it has a second spelling');
  const { payload, protectedHeader } = await compactVerify(jws, by.key, { algorithms: [by.algorithm] });
  if (protectedHeader.typ !== typ) throw new Error('it is signed for something else');
  return JSON.parse(new TextDecoder().decode(payload));
}

/** Not verified: the `kid` says when to look for a new key set, the `typ` as what it is to be verified. */
function headerOf(jws: string): { readonly kid?: string; readonly typ?: string } {
  try {
    return decodeProtectedHeader(jws);
  } catch {
    return {};
  }
}
