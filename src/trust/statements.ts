import { type CryptoKey, calculateJwkThumbprint, compactVerify, importJWK } from 'jose';
import { isInOneSpelling } from './keys.js';

/**
 * The claims of a statement that a node signed (`NodeIdentity.sign`), by nothing but its text: the key in its header counts if its
 * thumbprint is one of those given. Null where it does not verify.
 */
export async function verifyStatement(
  jws: string,
  typ: string,
  thumbprints: readonly string[],
): Promise<Readonly<Record<string, unknown>> | null> {
  try {
    if (!isInOneSpelling(jws)) return null;
    const { payload, protectedHeader } = await compactVerify(
      jws,
      async ({ jwk }) => {
        const { kty, crv, x } = jwk ?? {};
        if (kty !== 'OKP' || crv !== 'Ed25519' || x === undefined) throw new Error('not a key of a node');
        const key = { kty, crv, x };
        if (!thumbprints.includes(await calculateJwkThumbprint(key))) throw new Error('not a known key');
        return (await importJWK(key, 'EdDSA')) as CryptoKey;
      },
      { algorithms: ['EdDSA'] },
    );
    return protectedHeader.typ === typ ? JSON.parse(new TextDecoder().decode(payload)) : null;
  } catch {
    return null;
  }
}
