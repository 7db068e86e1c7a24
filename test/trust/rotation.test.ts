import type { JWK } from 'jose';
import { beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/core/index.js';
import {
  createAuthenticator,
  createNodeIdentity,
  createPeerDirectory,
  generateNodeKey,
  type NodeIdentity,
  type Peer,
  pinnedKeysOf,
  verifyReceipt,
} from '../../src/trust/index.js';

const US = 'https://billing.example';
const PEER = 'https://triage.example';
const clock = { now: () => new Date(1_800_000_000_000) };

let oldKey: JWK;
let newKey: JWK;
/** Before anything, with the new key prepared, and after the change. */
let before: NodeIdentity;
let prepared: NodeIdentity;
let after: NodeIdentity;
let served: NodeIdentity;

beforeEach(async () => {
  oldKey = await generateNodeKey();
  newKey = await generateNodeKey();
  const { kty, crv, x } = oldKey;
  const retired = [{ jwk: { kty, crv, x } as JWK, retiredAt: '2027-01-01T00:00:00.000Z' }];
  before = await createNodeIdentity({ url: PEER, privateJwk: oldKey, clock });
  prepared = await createNodeIdentity({ url: PEER, privateJwk: oldKey, nextJwk: newKey, clock });
  after = await createNodeIdentity({ url: PEER, privateJwk: newKey, retired, clock });
  served = before;
});

const keys = { keysOf: async () => served.jwks().keys };

function peerWith(pins: Pick<Peer, 'key' | 'nextKey'>): Peer {
  return { url: PEER, tenant: 'acme', contracts: [], skills: [], ...pins };
}

async function enters(peer: Peer, identity: NodeIdentity): Promise<boolean> {
  const peers = createPeerDirectory([peer]);
  const authenticator = createAuthenticator({ audience: US, peers, keys, clock, logger: silentLogger });
  return authenticator.authenticate(`Bearer ${await identity.tokenFor(US)}`).then(
    () => true,
    () => false,
  );
}

const receiptOf = (identity: NodeIdentity) =>
  identity.signReceipt({
    iss: PEER,
    root: US,
    case_id: 'CASE-1',
    handoff_id: 'CASE-1:2',
    attempt: 1,
    from_agent: US,
    to_agent: PEER,
    old_epoch: 1,
    new_epoch: 2,
    digest: 'a'.repeat(64),
    incarnation: 'inc_1',
    iat: 1_800_000_000,
    jti: 'receipt_1',
  });

describe('changing the signing key', () => {
  it('shows the prepared key before it signs with it, so that no peer ever refuses the agent', async () => {
    const peer = peerWith({ key: before.thumbprint, nextKey: after.thumbprint });
    for (const identity of [before, prepared, after]) {
      served = identity;
      expect(await enters(peer, identity)).toBe(true);
    }
    expect(prepared.nextThumbprint).toBe(after.thumbprint);
    expect(await enters(peerWith({ key: after.thumbprint }), after)).toBe(true);
  });

  it('refuses a token that a retired key signed, whichever key is pinned', async () => {
    served = after;
    expect(after.retired.map(({ thumbprint }) => thumbprint)).toEqual([before.thumbprint]);
    for (const peer of [
      peerWith({ key: before.thumbprint }),
      peerWith({ key: before.thumbprint, nextKey: after.thumbprint }),
      peerWith({ key: after.thumbprint }),
    ]) {
      expect(await enters(peer, before)).toBe(false);
    }
    await expect(pinnedKeysOf(peerWith({ key: before.thumbprint }), keys)).rejects.toMatchObject({
      code: 'peer_key_mismatch',
    });
  });

  it('[R-066] keeps verifying the receipts of a retired key, also for who pins only the new one', async () => {
    const receipt = await receiptOf(before);
    served = after;
    for (const pins of [{ key: after.thumbprint }, { key: before.thumbprint }]) {
      const { claims, key } = await verifyReceipt(receipt, peerWith(pins), keys);
      expect(claims.case_id).toBe('CASE-1');
      expect(key.x).toBe(oldKey.x);
    }
  });

  it('takes no key for retired unless the pinned key says so of exactly that key of that agent', async () => {
    const stranger = await generateNodeKey();
    const forged = await createNodeIdentity({ url: PEER, privateJwk: stranger, clock });
    const receipt = await receiptOf(forged);
    const [current, retired] = after.jwks().keys;
    const ownMark = await createNodeIdentity({
      url: PEER,
      privateJwk: stranger,
      retired: [
        { jwk: { kty: stranger.kty, crv: stranger.crv, x: stranger.x } as JWK, retiredAt: '2027-01-01' },
      ],
      clock,
    });
    const wrong: unknown[] = [
      { ...retired, x: stranger.x, kid: forged.thumbprint },
      ownMark.jwks().keys[1],
      { ...ownMark.jwks().keys[1], 'urn:holdfast:retired': 7 },
    ];
    for (const key of wrong) {
      const peerKeys = { keysOf: async () => [current, key] as JWK[] };
      const verified = verifyReceipt(receipt, peerWith({ key: after.thumbprint }), peerKeys);
      await expect(verified).rejects.toMatchObject({ code: 'receipt_invalid' });
    }
  });

  it('serves no more keys than peers read, however often it changed', async () => {
    const retired = await Promise.all(
      Array.from({ length: 20 }, async (_, day) => {
        const { kty, crv, x } = await generateNodeKey();
        const retiredAt = `2027-01-${String(day + 1).padStart(2, '0')}T00:00:00.000Z`;
        return { jwk: { kty, crv, x } as JWK, retiredAt };
      }),
    );
    const old = await createNodeIdentity({ url: PEER, privateJwk: newKey, nextJwk: oldKey, retired, clock });
    expect(old.retired).toHaveLength(20);
    expect(old.jwks().keys.length).toBeLessThanOrEqual(16);
    expect(old.jwks().keys.some(({ x }) => x === retired[19]?.jwk.x)).toBe(true);
    expect(old.jwks().keys.every((key) => key.d === undefined)).toBe(true);
  });
});
