import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { DEFAULT_LIMITS, isHoldfastError } from '../../src/core/index.js';
import {
  createEvidenceDownloader,
  createGuardedFetch,
  createPeerKeySource,
} from '../../src/transport/index.js';

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function guardedFor(url: string) {
  const guarded = createGuardedFetch({ loopback: [new URL(url).host] });
  closers.push(() => guarded.close());
  return guarded;
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => expect.fail('did not fail'),
    (thrown: unknown) => thrown,
  );
  if (!isHoldfastError(error)) throw error;
  return error.code;
}

describe('the keys of a peer', () => {
  const KEY = { kty: 'OKP', crv: 'Ed25519', x: 'AAAA', kid: 'k1' };
  const clockAt = (time: { now: number }) => ({ now: () => new Date(time.now) });

  async function source(answer: () => string | number) {
    const asked: string[] = [];
    const url = await serve((request, response) => {
      asked.push(request.url ?? '');
      const body = answer();
      if (typeof body === 'number') response.writeHead(body).end();
      else response.end(body);
    });
    const time = { now: 1_000_000 };
    return { keys: createPeerKeySource(guardedFor(url), DEFAULT_LIMITS, clockAt(time)), url, asked, time };
  }

  const one = () => JSON.stringify({ keys: [KEY] });

  test('are fetched once for all who ask at the same time, and kept for five minutes', async () => {
    const { keys, url, asked, time } = await source(one);
    const found = await Promise.all([1, 2, 3, 4].map(() => keys.keysOf(url)));
    expect(found).toEqual([[KEY], [KEY], [KEY], [KEY]]);
    time.now += 299_000;
    await keys.keysOf(url);
    expect(asked).toEqual(['/.well-known/jwks.json']);
    time.now += 2_000;
    await keys.keysOf(url);
    expect(asked).toHaveLength(2);
  });

  test('are asked for again at most every ten seconds, however many unknown keys turn up', async () => {
    const { keys, url, asked, time } = await source(one);
    await keys.keysOf(url);
    for (let index = 0; index < 20; index += 1) await keys.keysOf(url, { refresh: true });
    expect(asked).toHaveLength(1);
    time.now += 10_000;
    await keys.keysOf(url, { refresh: true });
    await keys.keysOf(url, { refresh: true });
    expect(asked).toHaveLength(2);
  });

  test('that cannot be had are asked for again a second later', async () => {
    let answer: string | number = 503;
    const { keys, url, asked, time } = await source(() => answer);
    for (let index = 0; index < 5; index += 1) {
      expect(await codeOf(keys.keysOf(url))).toBe('peer_unreachable');
    }
    expect(asked).toHaveLength(1);
    answer = one();
    time.now += 1_000;
    expect(await keys.keysOf(url)).toEqual([KEY]);
  });

  test('are asked for again, or failed for, without regard to what was seen when the clock was ahead', async () => {
    let answer: string | number = 503;
    const { keys, url, asked, time } = await source(() => answer);
    time.now += 3_600_000;
    expect(await codeOf(keys.keysOf(url))).toBe('peer_unreachable');
    answer = one();
    time.now -= 3_600_000;
    expect(await keys.keysOf(url)).toEqual([KEY]);
    time.now -= 3_600_000;
    expect(await keys.keysOf(url)).toEqual([KEY]);
    expect(asked).toHaveLength(3);
  });

  test.each([
    ['too many', JSON.stringify({ keys: Array.from({ length: 17 }, () => KEY) })],
    ['too large', JSON.stringify({ keys: [{ ...KEY, x: 'A'.repeat(100_000) }] })],
    ['not JSON', '<html>'],
    ['no set', '{"keys":{}}'],
    ['nothing', 'null'],
    ['doubled', '{"keys":[],"keys":[]}'],
  ])('are refused where they are %s', async (_what, answer) => {
    const { keys, url } = await source(() => answer);
    expect(await codeOf(keys.keysOf(url))).toBe('peer_unreachable');
  });
});

test('an answer that nobody wants lets go of its connection at once', async () => {
  let open = 0;
  const url = await serve((_request, response) => {
    open += 1;
    response.on('close', () => {
      open -= 1;
    });
    response.writeHead(404).write('and so on');
  });
  const guarded = guardedFor(url);
  const downloader = createEvidenceDownloader(guarded, async () => null);
  const download = downloader.download(`${url}/missing`, { maxBytes: 100, timeoutMs: 10_000 });
  expect(await codeOf(download)).toBe('evidence_unreadable');
  expect(await codeOf(createPeerKeySource(guarded, DEFAULT_LIMITS).keysOf(url))).toBe('peer_unreachable');
  await expect.poll(() => open, { timeout: 1_000 }).toBe(0);
});

describe('a download of evidence', () => {
  const BOUNDS = { maxBytes: 100, timeoutMs: 500 };

  test('carries our token only where it is told to, and never says where it comes from', async () => {
    const headers: Record<string, unknown>[] = [];
    const url = await serve((request, response) => {
      headers.push(request.headers);
      response.writeHead(200, { 'content-type': 'Text/Plain; charset=utf-8' }).end('bytes');
    });
    const downloader = createEvidenceDownloader(guardedFor(url), async (asked) =>
      asked.startsWith(`${url}/evidence/`) ? 'Bearer mine' : null,
    );
    const own = await downloader.download(`${url}/evidence/a/1`, BOUNDS);
    expect(own.mediaType).toBe('text/plain');
    const chunks: Uint8Array[] = [];
    for await (const chunk of own.body) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe('bytes');
    await downloader.download(`${url}/elsewhere`, BOUNDS);
    expect(headers.map(({ authorization }) => authorization)).toEqual(['Bearer mine', undefined]);
    expect(headers.every(({ referer }) => referer === undefined)).toBe(true);
  });

  test.each([
    ['/missing', 'evidence_unreadable'],
    ['/partial', 'evidence_unreadable'],
    ['/redirect', 'evidence_forbidden'],
    ['/gzip', 'evidence_unreadable'],
    ['/declared', 'evidence_too_large'],
    ['/longer', 'evidence_too_large'],
    ['/silent', 'evidence_unreadable'],
    ['/cut', 'evidence_unreadable'],
  ])('[R-050] of %s is %s', async (path, code) => {
    const answers: Record<string, RequestListener> = {
      '/missing': (_request, response) => response.writeHead(404).end(),
      '/partial': (_request, response) => response.writeHead(206).end('half'),
      '/redirect': (_request, response) => response.writeHead(302, { location: 'http://127.0.0.1/' }).end(),
      '/gzip': (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
      '/declared': (_request, response) =>
        response.writeHead(200, { 'content-length': '101' }).end('x'.repeat(101)),
      '/longer': (_request, response) => {
        response.write('x'.repeat(60));
        response.end('x'.repeat(60));
      },
      '/silent': () => undefined,
      '/cut': (_request, response) => {
        response.writeHead(200, { 'content-length': '50' }).write('x');
        setTimeout(() => response.destroy(), 10);
      },
    };
    const url = await serve((request, response) => answers[request.url ?? '']?.(request, response));
    const downloader = createEvidenceDownloader(guardedFor(url), async () => null);
    const read = async () => {
      const { body } = await downloader.download(`${url}${path}`, BOUNDS);
      for await (const _ of body);
    };
    expect(await codeOf(read())).toBe(code);
  });

  test('[R-050] of what may not be reached is forbidden', async () => {
    const guarded = createGuardedFetch(
      { loopback: [] },
      {
        resolve: async () => [{ address: '169.254.169.254', family: 4 }],
        connect: async () => expect.fail('nothing is dialled'),
      },
    );
    closers.push(() => guarded.close());
    const downloader = createEvidenceDownloader(guarded, async () => null);
    for (const url of [
      'https://169.254.169.254/',
      'http://127.0.0.1/',
      'https://internal.example.com/',
      'file:///etc/passwd',
    ]) {
      expect(await codeOf(downloader.download(url, BOUNDS))).toBe('evidence_forbidden');
    }
  });
});
