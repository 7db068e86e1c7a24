import { createHmac } from 'node:crypto';
import {
  CompactSign,
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  type JWK,
  SignJWT,
} from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  createAuthenticator,
  createNodeIdentity,
  createPeerDirectory,
  generateNodeKey,
  type NodeIdentity,
  type Peer,
  verifyReceipt,
} from '../../src/trust/index.js';

const US = 'https://billing.example.com';
const PEER = 'https://triage.example.com';
const OTHER = 'https://stranger.example.com';
const NOW = 1_800_000_000;
const clock = { now: () => new Date(NOW * 1000) };
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

let key: CryptoKey;
let publicJwk: JWK;
let peer: Peer;
let stranger: { key: CryptoKey; jwk: JWK; peer: Peer };

async function makePeer(url: string) {
  const pair = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const jwk = await exportJWK(pair.publicKey);
  const thumbprint = await calculateJwkThumbprint(jwk, 'sha256');
  const made: Peer = { url, key: thumbprint, tenant: 'default', contracts: [], skills: [] };
  return { key: pair.privateKey, jwk, peer: made };
}

beforeAll(async () => {
  ({ key, jwk: publicJwk, peer } = await makePeer(PEER));
  stranger = await makePeer(OTHER);
});

function authenticatorFor(options: { peers?: readonly Peer[]; keys?: () => readonly JWK[] } = {}) {
  const asked: string[] = [];
  const reasons: unknown[] = [];
  const authenticator = createAuthenticator({
    audience: US,
    peers: createPeerDirectory(options.peers ?? [peer, stranger.peer]),
    keys: {
      keysOf: async (url) => {
        asked.push(url);
        return options.keys?.() ?? [url === PEER ? publicJwk : stranger.jwk];
      },
    },
    clock,
    logger: { info() {}, error() {}, warn: (fields) => reasons.push(fields) },
  });
  return { authenticator, asked, reasons };
}

type Claims = Readonly<Record<string, unknown>>;

/** A token as it should be, but for what is given; `undefined` leaves a claim out. */
function tokenOf(claims: Claims = {}, header: Claims = {}, signer = key): Promise<string> {
  const payload = { iss: PEER, sub: PEER, aud: US, iat: NOW, exp: NOW + 300, jti: 'jti-1', ...claims };
  return new CompactSign(new TextEncoder().encode(JSON.stringify(payload)))
    .setProtectedHeader({ alg: 'EdDSA', typ: 'JWT', ...header })
    .sign(signer);
}

const encode = (value: object | string) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

const CLAIMS = { iss: PEER, sub: PEER, aud: US, iat: NOW, exp: NOW + 300, jti: 'jti-1' };

/** Signed over what no library would sign. */
function handMade(header: object, sign: (input: string) => string): string {
  const input = `${encode(header)}.${encode(CLAIMS)}`;
  return `${input}.${sign(input)}`;
}

async function refuses(token: string, options: Parameters<typeof authenticatorFor>[0] = {}) {
  const { authenticator, asked, reasons } = authenticatorFor(options);
  await expect(authenticator.authenticate(`Bearer ${token}`)).rejects.toMatchObject({
    code: 'unauthenticated',
    message: 'No valid credentials were presented.',
  });
  expect(JSON.stringify(reasons)).not.toContain(token.slice(0, 60));
  return asked;
}

describe('a token', () => {
  it('[R-070] of a configured peer, for us and short-lived, says who is asking', async () => {
    const { authenticator } = authenticatorFor();
    const principal = { agent: PEER, tenant: 'default', tokenId: 'jti-1' };
    expect(await authenticator.authenticate(`Bearer ${await tokenOf()}`)).toEqual(principal);
    const asList = await tokenOf({ aud: [US] });
    expect(await authenticator.authenticate(`bearer ${asList}`)).toEqual(principal);
    const clockBehind = await tokenOf({ iat: NOW + 50, exp: NOW + 350 });
    expect(await authenticator.authenticate(`Bearer ${clockBehind}`)).toEqual(principal);
  });

  it.each<[string, Claims]>([
    ['for somebody else', { aud: PEER }],
    ['for our URL with a slash', { aud: `${US}/` }],
    ['for us and somebody else, who could use it here', { aud: [OTHER, US] }],
    ['for nobody', { aud: undefined }],
    ['from an unknown issuer', { iss: 'https://unknown.example.com' }],
    ['from a list of issuers', { iss: [PEER] }],
    ['from ourselves', { iss: US, sub: US }],
    ['about another agent', { sub: OTHER }],
    ['without an end', { exp: undefined }],
    ['with an end that is text', { exp: String(NOW + 300) }],
    ['that lives for an hour', { exp: NOW + 3600 }],
    ['that lives for an hour from an issue to come', { iat: NOW + 3300, exp: NOW + 3600 }],
    ['issued next year', { iat: NOW + 31_536_000, exp: NOW + 31_536_300 }],
    ['issued after its end', { iat: NOW + 1000, exp: NOW + 300 }],
    ['issued at no time', { iat: undefined }],
    ['issued and ending at the end of time', { iat: 1e300, exp: 1e300 }],
    ['that has ended', { iat: NOW - 400, exp: NOW - 100 }],
    ['not valid yet', { nbf: NOW + 200 }],
    ['without an id', { jti: undefined }],
    ['with an id that is no text', { jti: 7 }],
    ['with an endless id', { jti: 'x'.repeat(129) }],
    ['of a hundred kilobytes', { pad: 'x'.repeat(100_000) }],
  ])('[R-070] %s is refused', async (_name, claims) => {
    await refuses(await tokenOf(claims));
  });

  it.each<[string, Claims]>([
    ['a receipt', { typ: 'holdfast-receipt+jwt' }],
    ['an access token', { typ: 'at+jwt' }],
    ['of no type', { typ: undefined }],
  ])('[R-070] that is %s is refused', async (_name, header) => {
    await refuses(await tokenOf({}, header));
  });

  it('[R-070] signed by another key is refused, whatever its header offers instead', async () => {
    for (const header of [
      {},
      { jwk: stranger.jwk },
      { jku: 'https://stranger.example.com/jwks', x5u: 'https://stranger.example.com/x5u' },
      { kid: '../../../dev/null' },
      { kid: "' or 1=1 --" },
    ]) {
      expect(await refuses(await tokenOf({}, header, stranger.key))).toEqual([PEER]);
    }
  });

  it('[R-070] without a signature, or with one made from public things, is refused', async () => {
    const mac = (secret: Uint8Array) => (input: string) =>
      createHmac('sha256', secret).update(input).digest('base64url');
    const raw = Buffer.from(publicJwk.x ?? '', 'base64url');
    await refuses(handMade({ alg: 'none', typ: 'JWT' }, () => encode('x')));
    await refuses(`${handMade({ alg: 'none', typ: 'JWT' }, () => '')}`);
    await refuses(handMade({ alg: 'HS256', typ: 'JWT' }, mac(raw)));
    await refuses(handMade({ alg: 'HS256', typ: 'JWT' }, mac(Buffer.from(JSON.stringify(publicJwk)))));
  });

  it('[R-070] with an extension that must be understood is refused', async () => {
    const sign = async (header: object) => {
      const [, payload = ''] = (await tokenOf()).split('.');
      const input = `${encode(header)}.${payload}`;
      const signature = await crypto.subtle.sign('Ed25519', key, new TextEncoder().encode(input));
      return `${input}.${Buffer.from(signature).toString('base64url')}`;
    };
    await refuses(
      await sign({ alg: 'EdDSA', typ: 'JWT', crit: ['http://example.com/x'], 'http://example.com/x': 1 }),
    );
    await refuses(await sign({ alg: 'EdDSA', typ: 'JWT', crit: ['b64'], b64: false }));
    await refuses(await sign({ alg: 'EdDSA', typ: 'JWT', crit: [] }));
  });

  it('[R-070] altered in any one character is refused, the bits that no decoder looks at included', async () => {
    const token = await tokenOf();
    const { authenticator } = authenticatorFor();
    const start = token.lastIndexOf('.') + 1;
    const altered = [...token].flatMap((char, at) => {
      if (char === '.') return [];
      const others = [...ALPHABET].filter((other) => other !== char);
      // All of them where it matters most; one each elsewhere keeps the test short.
      const tried = at >= token.length - 2 || at === start - 2 ? others : others.slice(at % 7, (at % 7) + 1);
      return tried.map((other) => `${token.slice(0, at)}${other}${token.slice(at + 1)}`);
    });
    for (const each of altered) {
      await expect(authenticator.authenticate(`Bearer ${each}`), each).rejects.toMatchObject({
        code: 'unauthenticated',
      });
    }
  });

  it('[R-070] that was good is not so any more once its peer is gone or has another key', async () => {
    const token = await tokenOf();
    let known: Peer | null = peer;
    const authenticator = createAuthenticator({
      audience: US,
      peers: { find: () => known, list: () => [] },
      keys: { keysOf: async () => [publicJwk, stranger.jwk] },
      clock,
      logger: { info() {}, error() {}, warn() {} },
    });
    const authenticate = () => authenticator.authenticate(`Bearer ${token}`);
    await authenticate();
    known = { ...peer, key: stranger.peer.key };
    await expect(authenticate()).rejects.toMatchObject({ code: 'unauthenticated' });
    known = null;
    await expect(authenticate()).rejects.toMatchObject({ code: 'unauthenticated' });
    known = { ...peer, tenant: 'moved' };
    expect(await authenticate()).toMatchObject({ tenant: 'moved' });
    known = peer;
    expect(await authenticate()).toMatchObject({ tenant: 'default' });
  });
});

const BAD_KEYS = [
  { kty: 'OKP', crv: 'Ed25519' },
  { kty: 'OKP', crv: 'Ed25519', x: 7 },
  { kty: 'OKP', crv: 'Ed25519', x: '' },
  { kty: 'EC', crv: 'P-256', x: 'AAAA' },
  { kty: 'RSA', n: 'AAAA', e: 'AQAB' },
  { kty: 'oct', k: 'AAAA' },
  {},
] as unknown as JWK[];

describe('keys of a peer that make no sense', () => {
  it('do not hide the one that is pinned', async () => {
    const { authenticator } = authenticatorFor({ keys: () => [...BAD_KEYS, publicJwk] });
    expect(await authenticator.authenticate(`Bearer ${await tokenOf()}`)).toMatchObject({ agent: PEER });
  });

  it('are an error of ours and not of a library, where they are all there is', async () => {
    const receipt = await tokenOf({}, { typ: 'holdfast-receipt+jwt' });
    const verified = verifyReceipt(receipt, peer, { keysOf: async () => BAD_KEYS });
    await expect(verified).rejects.toMatchObject({ code: 'peer_key_mismatch' });
  });
});

describe('a receipt', () => {
  let identity: NodeIdentity;
  let signer: Peer;
  let receipt: string;
  const claims = {
    iss: US,
    root: PEER,
    case_id: 'CASE-7001',
    handoff_id: 'CASE-7001:4',
    attempt: 1,
    from_agent: PEER,
    to_agent: US,
    old_epoch: 3,
    new_epoch: 4,
    digest: 'a'.repeat(64),
    incarnation: 'inc_1',
    iat: NOW,
    jti: 'receipt_1',
  };
  const verify = (text: string, by = signer) =>
    verifyReceipt(text, by, { keysOf: async () => [...identity.jwks().keys, stranger.jwk] });

  beforeAll(async () => {
    identity = await createNodeIdentity({ url: US, privateJwk: await generateNodeKey(), clock });
    signer = { url: US, key: identity.thumbprint, tenant: 'default', contracts: [], skills: [] };
    receipt = await identity.signReceipt(claims);
  });

  it('verifies with the key of the peer, and only as a receipt', async () => {
    expect((await verify(receipt)).claims).toEqual(claims);
    await expect(verify(receipt, { ...signer, key: stranger.peer.key })).rejects.toMatchObject({
      code: 'receipt_invalid',
    });
    await expect(verify(await identity.tokenFor(PEER))).rejects.toMatchObject({ code: 'receipt_invalid' });
    const claimed = new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', typ: 'holdfast-receipt+jwt' });
    await expect(verify(await claimed.sign(stranger.key))).rejects.toMatchObject({ code: 'receipt_invalid' });
  });

  it('altered in any bit of its signature is none, nor altered in any character before', async () => {
    const start = receipt.lastIndexOf('.') + 1;
    const altered = [...receipt].flatMap((char, at) => {
      if (char === '.') return [];
      const bits = at >= start ? [1, 2, 4, 8, 16, 32] : [1 << (at % 6)];
      const value = ALPHABET.indexOf(char);
      return bits.map((bit) => `${receipt.slice(0, at)}${ALPHABET[value ^ bit]}${receipt.slice(at + 1)}`);
    });
    expect(altered.length).toBeGreaterThan(900);
    for (const each of altered) {
      await expect(verify(each), each).rejects.toMatchObject({ code: 'receipt_invalid' });
    }
  });
});
