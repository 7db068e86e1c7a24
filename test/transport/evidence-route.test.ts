import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signEvidenceUrl } from '../../src/evidence/index.js';
import { PEER, SECRET, STRANGER, startNode, type TestNode } from './support.js';

let node: TestNode;

beforeAll(async () => {
  node = await startNode();
});

afterAll(() => node.close());

describe('evidence', () => {
  const bytes = Buffer.from('The customer was charged twice.');

  async function stored(info = { mediaType: 'text/plain', filename: 'transcript.txt' }) {
    const content = async function* () {
      yield bytes.subarray(0, 10);
      yield bytes.subarray(10);
    };
    return node.evidence.put(content(), info, { maxBytes: 1_000 });
  }

  type Stored = Awaited<ReturnType<typeof stored>>;
  const urlOf = (artifact: Stored, changes: { audience?: string; version?: number; expiresAt?: Date } = {}) =>
    signEvidenceUrl(SECRET, {
      baseUrl: node.url,
      ...artifact,
      audience: PEER,
      expiresAt: new Date(Date.now() + 60_000),
      ...changes,
    });
  const fetchAs = (agent: string, url: string) =>
    fetch(url, { headers: { authorization: `Bearer ${agent}` } });

  test('[R-053] is gone once it was revoked, and tells so to nobody but the agent it was signed for', async () => {
    const artifact = await stored();
    const url = urlOf(artifact);
    expect((await fetchAs(PEER, url)).status).toBe(200);
    await node.evidence.revoke(artifact.artifactId, artifact.version, 'the reason stays here');
    const answer = await fetchAs(PEER, url);
    expect(answer.status).toBe(410);
    const body = await answer.text();
    expect(body).toContain('EVIDENCE_REVOKED');
    expect(body).not.toContain('the reason stays here');
    expect((await fetchAs(STRANGER, url)).status).toBe(404);
    expect((await fetchAs(PEER, url.replace('sig=', 'sig=x'))).status).toBe(404);
  });

  test('is served to the agent it was signed for, as an attachment that nothing renders', async () => {
    const artifact = await stored({ mediaType: 'text/html', filename: 'Ümlaut "x".html' });
    const answer = await fetchAs(PEER, urlOf(artifact));
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(bytes);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/html',
      'content-length': String(bytes.length),
      'content-disposition': `attachment; filename="_mlaut__x_.html"; filename*=UTF-8''%C3%9Cmlaut%20_x_.html`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cache-control': 'no-store',
    });
  });

  test.each([
    ['invoice\u202efdp.exe', 'invoice_fdp.exe'],
    ['invoice\u061c.pdf', 'invoice_.pdf'],
    ['a\r\nSet-Cookie: x=1.txt', 'a__Set-Cookie_ x=1.txt'],
    ['a\u2028b.txt', 'a_b.txt'],
    ['half \ud800.txt', 'half _.txt'],
    ['../../etc/passwd', 'passwd'],
    [`${'x'.repeat(300)}.pdf`, `${'x'.repeat(116)}.pdf`],
    ['CON', '_CON'],
    ['', 'evidence'],
  ])('is never called %j', async (filename, shown) => {
    const answer = await fetchAs(PEER, urlOf(await stored({ mediaType: 'text/plain', filename })));
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
    const disposition = answer.headers.get('content-disposition') ?? '';
    expect(decodeURIComponent(disposition.split("UTF-8''")[1] ?? '')).toBe(shown);
    expect(disposition.replace(/%20/g, ' ')).toMatch(
      /^attachment; filename="[\w.-]+"; filename\*=UTF-8''[\w. %-]+$/,
    );
  });

  test('is not found by anyone else, nor by a URL that is not exactly the signed one', async () => {
    const artifact = await stored();
    const good = urlOf(artifact);
    for (const [agent, url] of [
      [STRANGER, good],
      [PEER, urlOf(artifact, { audience: STRANGER })],
      [PEER, urlOf(artifact, { version: artifact.version + 1 })],
      [PEER, urlOf(artifact, { expiresAt: new Date(Date.now() - 1) })],
      [PEER, good.replace(/sig=./, 'sig=_')],
      [PEER, `${good}&x=1`],
      [PEER, `${good}?x`],
      [PEER, good.replace('/evidence/', '/evidence/x/evidence/')],
      [PEER, good.replace('/evidence/', '/%65vidence/')],
      [PEER, good.split('?')[0] ?? ''],
      [PEER, `${node.url}/evidence/`],
    ] as const) {
      const answer = await fetchAs(agent, url);
      expect([answer.status, JSON.stringify(await answer.json()).includes('NOT_FOUND')], url).toEqual([
        404,
        true,
      ]);
    }
    expect((await fetch(good)).status).toBe(401);
    expect((await fetchAs(PEER, good)).status).toBe(200);
  });

  test('[R-153] its URL is a secret that no log line holds', async () => {
    const url = urlOf(await stored());
    await (await fetchAs(PEER, url)).arrayBuffer();
    const logged = JSON.stringify(node.logger.lines);
    expect(logged).toContain('/evidence/');
    expect(logged).not.toContain('sig=');
    expect(logged).not.toContain('Bearer');
  });
});
