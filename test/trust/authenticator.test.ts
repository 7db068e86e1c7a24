import { type CryptoKey, generateKeyPair, importJWK, type JWK, SignJWT, UnsecuredJWT } from 'jose';
import { beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/core/index.js';
import {
  type Authenticator,
  createAuthenticator,
  createNodeIdentity,
  createPeerDirectory,
  generateNodeKey,
  type NodeIdentity,
  type Peer,
} from '../../src/trust/index.js';

const US = 'https://billing.example';
const PEER = 'https://triage.example';
const OTHER = 'https://other.example';

let now: number;
let jwk: JWK;
let identity: NodeIdentity;
let other: NodeIdentity;
let served: JWK[];
let asked: number;
let pinned: string;
let authenticator: Authenticator;
const clock = { now: () => new Date(now * 1000) };

beforeEach(async () => {
  now = 1_800_000_000;
  asked = 0;
  jwk = await generateNodeKey();
  identity = await createNodeIdentity({ url: PEER, privateJwk: jwk, clock });
  other = await createNodeIdentity({ url: OTHER, privateJwk: await generateNodeKey(), clock });
  served = identity.jwks().keys;
  pinned = identity.thumbprint;
  const peer = (url: string, key: () => string): Peer => ({
    url,
    get key() {
      return key();
    },
    tenant: 'acme',
    contracts: [],
    skills: [],
  });
  const peers = [peer(PEER, () => pinned), peer(OTHER, () => other.thumbprint)];
  authenticator = createAuthenticator({
    audience: US,
    peers: { find: (url) => peers.find((one) => one.url === url) ?? null, list: () => peers },
    keys: {
      keysOf: async (url) => {
        asked++;
        return url === PEER ? served : other.jwks().keys;
      },
    },
    clock,
    logger: silentLogger,
  });
});

interface Change {
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
  key?: JWK;
}

async function token({ claims = {}, header = {}, key = jwk }: Change = {}): Promise<string> {
  const all = { iss: PEER, sub: PEER, aud: US, iat: now, exp: now + 300, jti: 'jwt-1', ...claims };
  const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  return new SignJWT(given)
    .setProtectedHeader({ alg: 'EdDSA', typ: 'JWT', ...header })
    .sign((await importJWK(key, 'EdDSA')) as CryptoKey);
}

const authenticate = (text: string | undefined) => authenticator.authenticate(text);
const refused = (text: string | undefined) =>
  expect(authenticate(text)).rejects.toMatchObject({
    code: 'unauthenticated',
    message: 'No valid credentials were presented.',
  });

describe('authenticating a peer', () => {
  it('[R-070] knows a peer by its pinned key, and its tenant by configuration', async () => {
    expect(await authenticate(`Bearer ${await token()}`)).toEqual({
      agent: PEER,
      tenant: 'acme',
      tokenId: 'jwt-1',
    });
    expect(await authenticate(`bearer ${await identity.tokenFor(US)}`)).toMatchObject({ agent: PEER });
  });

  it('takes only what was made for it: issuer, subject, audience, life, type', async () => {
    const wrong: Record<string, unknown>[] = [
      { aud: PEER },
      { aud: [PEER, OTHER] },
      { aud: undefined },
      { sub: OTHER },
      { sub: undefined },
      { iss: 'https://stranger.example', sub: 'https://stranger.example' },
      { iss: `${PEER}/`, sub: `${PEER}/` },
      { iss: undefined },
      { exp: undefined },
      { exp: now + 301 },
      { exp: now - 61 },
      { iat: undefined },
      { iat: now + 61, exp: now + 120 },
      { iat: now + 99_700, exp: now + 100_000 },
      { nbf: now + 120 },
      { jti: undefined },
      { jti: '' },
      { jti: 7 },
      { jti: 'x'.repeat(129) },
    ];
    for (const claims of wrong) await refused(`Bearer ${await token({ claims })}`);
    await refused(`Bearer ${await token({ header: { typ: 'holdfast-receipt+jwt' } })}`);
    await refused(`Bearer ${await token({ header: { typ: undefined } })}`);
  });

  it('is not talked into another key or algorithm', async () => {
    const mine = await generateNodeKey();
    await refused(`Bearer ${await token({ key: mine })}`);
    await refused(`Bearer ${await token({ key: mine, header: { jwk: { ...mine, d: undefined } } })}`);
    await refused(
      `Bearer ${await token({ key: mine, header: { kid: identity.thumbprint, jku: 'https://evil.example' } })}`,
    );
    await refused(
      `Bearer ${new UnsecuredJWT({ iss: PEER, sub: PEER, aud: US, jti: 'x' }).setExpirationTime('4m').encode()}`,
    );
    const secret = new TextEncoder().encode(JSON.stringify(identity.jwks().keys[0]));
    const symmetric = new SignJWT({ iss: PEER, sub: PEER, aud: US, iat: now, exp: now + 60, jti: 'x' });
    await refused(`Bearer ${await symmetric.setProtectedHeader({ alg: 'HS256', typ: 'JWT' }).sign(secret)}`);
    // Another configured peer, signing with its own good key, stays that other peer.
    expect(await authenticate(`Bearer ${await other.tokenFor(US)}`)).toMatchObject({ agent: OTHER });
  });

  it('ignores a served key that is not the pinned one, and looks again once when the pinned one is missing', async () => {
    served = [{ ...(await generateNodeKey()), d: undefined as never }];
    await refused(`Bearer ${await token()}`);
    expect(asked).toBe(2);
  });

  it('takes ES256 from a peer whose pinned key is a P-256 key', async () => {
    const pair = await generateKeyPair('ES256', { extractable: true });
    const { exportJWK, calculateJwkThumbprint } = await import('jose');
    const publicJwk = await exportJWK(pair.publicKey);
    served = [publicJwk];
    pinned = await calculateJwkThumbprint(publicJwk);
    const signed = await new SignJWT({ iss: PEER, sub: PEER, aud: US, iat: now, exp: now + 60, jti: 'x' })
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
      .sign(pair.privateKey);
    expect(await authenticate(`Bearer ${signed}`)).toMatchObject({ agent: PEER });
  });

  it('remembers a verified token until it expires or the pinned key changes', async () => {
    const text = `Bearer ${await token()}`;
    await authenticate(text);
    await authenticate(text);
    expect(asked).toBe(1);
    pinned = other.thumbprint;
    await refused(text);
    pinned = identity.thumbprint;
    await authenticate(text);
    now += 301 + 60;
    await refused(text);
  });

  it('refuses everything that is not one bearer token of sane length', async () => {
    const good = await token();
    const wrong = [
      undefined,
      '',
      good,
      `Basic ${good}`,
      `Bearer ${good} x`,
      `Bearer  ${good}`,
      `Bearer ${good}.x`,
      'Bearer a.b',
      `Bearer ${'a'.repeat(5000)}.b.c`,
    ];
    for (const text of wrong) await refused(text);
  });

  it('reuses its own token for a peer until a minute before it expires', async () => {
    const first = await identity.tokenFor(US);
    now += 239;
    expect(await identity.tokenFor(US)).toBe(first);
    expect(await identity.tokenFor(OTHER)).not.toBe(first);
    now += 2;
    expect(await identity.tokenFor(US)).not.toBe(first);
  });

  it('makes a new token once the clock was set back, since the old one comes from the future', async () => {
    now += 3600;
    const ahead = await identity.tokenFor(US);
    now -= 3600;
    const right = await identity.tokenFor(US);
    expect(right).not.toBe(ahead);
    expect(await authenticate(`Bearer ${right}`)).toMatchObject({ agent: PEER });
  });

  it('does not take one URL for two peers', () => {
    const peer = { key: 'k', tenant: 't', contracts: [], skills: [] };
    const twice = [
      { url: 'https://A.example/', ...peer },
      { url: 'https://a.example', ...peer },
    ];
    expect(() => createPeerDirectory(twice)).toThrow('configured twice');
  });
});
