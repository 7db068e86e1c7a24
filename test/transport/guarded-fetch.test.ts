import { createServer, type RequestListener, type Server } from 'node:http';
import net from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { type ErrorCode, isHoldfastError } from '../../src/core/index.js';
import {
  type ConnectTarget,
  createGuardedFetch,
  type FetchPolicy,
  type GuardedFetch,
  type ResolvedAddress,
} from '../../src/transport/index.js';
import { HOSTILE, LEGITIMATE } from './hostile-urls.js';

const BOUNDS = { maxBytes: 10_000, timeoutMs: 2_000 };
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function serve(listener: RequestListener): Promise<number> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as net.AddressInfo).port;
}

interface Network {
  readonly guarded: GuardedFetch;
  readonly resolved: string[];
  readonly dialled: ConnectTarget[];
}

type Answers = readonly string[] | ((time: number) => readonly string[]);

/** A made-up internet: names resolve as told, and every dial, whatever its address, ends at a server on loopback. */
function network(
  port: number,
  answers: Answers = ['93.184.215.14'],
  policy: Partial<FetchPolicy> = {},
  answeredBy?: string,
): Network {
  const resolved: string[] = [];
  const dialled: ConnectTarget[] = [];
  const guarded = createGuardedFetch(
    { loopback: [], ...policy },
    {
      resolve: async (host): Promise<ResolvedAddress[]> => {
        resolved.push(host);
        const list = typeof answers === 'function' ? answers(resolved.length) : answers;
        return list.map((address) => ({ address, family: net.isIP(address) }));
      },
      connect: async (target) => {
        dialled.push(target);
        const socket = net.connect(port, '127.0.0.1');
        await new Promise<void>((resolve, reject) => {
          socket.once('connect', resolve);
          socket.once('error', reject);
        });
        Object.defineProperty(socket, 'remoteAddress', { value: answeredBy ?? target.address });
        return socket;
      },
    },
  );
  closers.push(() => guarded.close());
  return { guarded, resolved, dialled };
}

async function refusal(work: Promise<unknown>): Promise<{ code: ErrorCode; reason: unknown }> {
  const error = await work.then(
    () => expect.fail('was not refused'),
    (thrown: unknown) => thrown,
  );
  if (!isHoldfastError(error)) throw error;
  return { code: error.code, reason: error.data.reason };
}

describe('URLs', () => {
  test('there are enough hostile and legitimate ones', () => {
    expect(new Set(HOSTILE.map(([, url]) => url)).size).toBeGreaterThanOrEqual(150);
    expect(new Set(LEGITIMATE).size).toBeGreaterThanOrEqual(40);
  });

  test('[R-050] refuses every hostile URL without resolving or dialling', async () => {
    const { guarded, resolved, dialled } = network(1);
    const wrong: string[] = [];
    for (const [reason, url] of HOSTILE) {
      const found = await refusal(guarded.request(url, BOUNDS));
      if (found.code !== 'url_forbidden' || found.reason !== reason)
        wrong.push(`${url} -> ${JSON.stringify(found)}`);
    }
    expect(wrong).toEqual([]);
    expect({ resolved, dialled }).toEqual({ resolved: [], dialled: [] });
  });

  test('reaches every legitimate URL, at the address that was checked', async () => {
    const port = await serve((_request, response) => response.end('ok'));
    const { guarded, dialled } = network(port);
    for (const url of LEGITIMATE) {
      const answer = await guarded.request(url, BOUNDS);
      expect(Buffer.from(await answer.bytes()).toString(), url).toBe('ok');
    }
    expect(dialled.every(({ secure, port: to }) => secure && to === 443)).toBe(true);
  });

  test('keeps to the hosts and ports of the policy', async () => {
    const port = await serve((_request, response) => response.end('ok'));
    const policy = { allowHosts: ['files.example.com', '*.example.org'], allowedPorts: [443, 8443] };
    const { guarded } = network(port, undefined, policy);
    for (const url of ['https://files.example.com/', 'https://a.b.example.org:8443/']) {
      expect((await guarded.request(url, BOUNDS)).status).toBe(200);
    }
    for (const [url, reason] of [
      ['https://example.com/', 'host'],
      ['https://example.org/', 'host'],
      ['https://xexample.org/', 'host'],
      ['https://files.example.com.evil.net/', 'host'],
      ['https://8.8.8.8/', 'host'],
      ['https://files.example.com:9443/', 'port'],
    ] as const) {
      expect(await refusal(guarded.request(url, BOUNDS)), url).toEqual({ code: 'url_forbidden', reason });
    }
  });
});

describe('addresses', () => {
  test.each([
    ['private', ['10.1.2.3']],
    ['private IPv6', ['fd00:ec2::254']],
    ['loopback', ['127.0.0.1']],
    ['metadata', ['169.254.169.254']],
    ['mapped', ['::ffff:169.254.169.254']],
    ['compatible', ['::10.0.0.1']],
    ['NAT64', ['64:ff9b::a00:1']],
    ['shared', ['100.64.0.1']],
    ['scoped', ['fe80::1%eth0']],
    ['not an address', ['example.org']],
    ['public then private', ['93.184.215.14', '10.0.0.1']],
    ['private then public', ['10.0.0.1', '93.184.215.14']],
    ['public IPv4, private IPv6', ['93.184.215.14', 'fc00::1']],
  ])('[R-050] refuses a name whose answer is %s', async (_what, answers) => {
    const { guarded, dialled } = network(1, answers);
    const found = await refusal(guarded.request('https://files.example.com/', BOUNDS));
    expect(found).toEqual({ code: 'url_forbidden', reason: 'address' });
    expect(dialled).toEqual([]);
  });

  test('[R-050] resolves once and dials what it checked, so that rebinding between the two gains nothing', async () => {
    const port = await serve((_request, response) => {
      response.setHeader('connection', 'close');
      response.end('ok');
    });
    const rebinding = (time: number) => (time === 1 ? ['93.184.215.14'] : ['127.0.0.1']);
    const { guarded, resolved, dialled } = network(port, rebinding);
    const answer = await guarded.request('https://rebind.example.com/', BOUNDS);
    expect(Buffer.from(await answer.bytes()).toString()).toBe('ok');
    expect(resolved).toHaveLength(1);
    const second = await refusal(guarded.request('https://rebind.example.com/', BOUNDS));
    expect(second).toEqual({ code: 'url_forbidden', reason: 'address' });
    expect(dialled.map(({ address }) => address)).toEqual(['93.184.215.14']);
  });

  test('refuses a connection that ended at another address than the one dialled', async () => {
    const port = await serve((_request, response) => response.end('secret'));
    const { guarded } = network(port, ['93.184.215.14'], {}, '127.0.0.1');
    const found = await refusal(guarded.request('https://files.example.com/', BOUNDS));
    expect(found).toEqual({ code: 'url_forbidden', reason: 'address' });
  });

  test('tries the next address where one does not answer', async () => {
    const port = await serve((_request, response) => response.end('ok'));
    const dialled: string[] = [];
    const guarded = createGuardedFetch(
      { loopback: [] },
      {
        resolve: async () => ['1.1.1.1', '8.8.8.8'].map((address) => ({ address, family: 4 })),
        connect: async ({ address }) => {
          dialled.push(address);
          if (address === '1.1.1.1') throw new Error('refused');
          const socket = net.connect(port, '127.0.0.1');
          Object.defineProperty(socket, 'remoteAddress', { value: address });
          return socket;
        },
      },
    );
    closers.push(() => guarded.close());
    expect((await guarded.request('https://two.example.com/', BOUNDS)).status).toBe(200);
    expect(dialled).toEqual(['1.1.1.1', '8.8.8.8']);
  });
});

describe('loopback', () => {
  test('[R-050] is reached over http only where the configuration names host and port', async () => {
    const port = await serve((_request, response) => response.end('ok'));
    const guarded = createGuardedFetch({ loopback: [`127.0.0.1:${port}`] });
    closers.push(() => guarded.close());
    const answer = await guarded.request(`http://127.0.0.1:${port}/x`, BOUNDS);
    expect(Buffer.from(await answer.bytes()).toString()).toBe('ok');
    for (const url of [
      `http://127.0.0.1:${port + 1}/`,
      `http://localhost:${port}/`,
      `http://127.0.0.2:${port}/`,
      `http://[::1]:${port}/`,
    ]) {
      expect((await refusal(guarded.request(url, BOUNDS))).code, url).toBe('url_forbidden');
    }
  });

  test('a name in the configuration is only ever a loopback address', async () => {
    const { guarded, dialled } = network(1, ['10.0.0.5'], {
      loopback: ['billing.localhost:4001', '10.0.0.6:80'],
    });
    for (const url of ['http://billing.localhost:4001/', 'http://10.0.0.6/']) {
      expect(await refusal(guarded.request(url, BOUNDS))).toEqual({
        code: 'url_forbidden',
        reason: 'address',
      });
    }
    expect(dialled).toEqual([]);
  });
});

describe('answers', () => {
  test.each([301, 302, 303, 307, 308])('[R-050] does not follow a %i', async (status) => {
    const seen: (string | undefined)[] = [];
    const port = await serve((request, response) => {
      seen.push(request.url);
      response.writeHead(status, { location: 'http://169.254.169.254/latest/' }).end();
    });
    const { guarded } = network(port);
    const found = await refusal(guarded.request('https://files.example.com/a', BOUNDS));
    expect(found).toEqual({ code: 'url_forbidden', reason: 'redirect' });
    expect(seen).toEqual(['/a']);
  });

  test('asks for identity and refuses any other encoding', async () => {
    const asked: unknown[] = [];
    const port = await serve((request, response) => {
      asked.push(request.headers['accept-encoding']);
      response.setHeader('content-encoding', request.url === '/identity' ? 'identity' : 'gzip');
      response.end(request.url === '/identity' ? 'ok' : gzipSync(Buffer.alloc(1_000_000)));
    });
    const { guarded } = network(port);
    expect((await guarded.request('https://files.example.com/identity', BOUNDS)).status).toBe(200);
    const found = await refusal(guarded.request('https://files.example.com/', BOUNDS));
    expect(found).toEqual({ code: 'peer_error', reason: 'content_encoding' });
    expect(asked).toEqual(['identity', 'identity']);
  });

  test('[R-050] stops at the byte cap, declared or not', async () => {
    let written = 0;
    const port = await serve((request, response) => {
      if (request.url === '/declared') response.setHeader('content-length', '1000000');
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(4_096))) written += 4_096;
      };
      response.on('drain', more);
      more();
    });
    const { guarded } = network(port);
    const tooLarge = { code: 'peer_error', reason: 'too_large' };
    expect(await refusal(guarded.request('https://files.example.com/declared', BOUNDS))).toEqual(tooLarge);
    const answer = await guarded.request('https://files.example.com/endless', BOUNDS);
    expect(await refusal(answer.bytes())).toEqual(tooLarge);
    expect(written).toBeLessThan(20_000_000);
  });

  test('a body shorter than it was declared is no whole answer', async () => {
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('short');
      setTimeout(() => response.destroy(), 10);
    });
    const { guarded } = network(port);
    const answer = await guarded.request('https://files.example.com/', BOUNDS);
    expect((await refusal(answer.bytes())).code).toBe('outcome_unknown');
  });

  test('[R-050] the time cap covers a body that drips for ever', async () => {
    const port = await serve((_request, response) => {
      const drip = setInterval(() => response.write('.'), 10);
      response.on('close', () => clearInterval(drip));
    });
    const { guarded } = network(port);
    const startedAt = performance.now();
    const answer = await guarded.request('https://files.example.com/', { maxBytes: 10_000, timeoutMs: 150 });
    expect((await refusal(answer.bytes())).code).toBe('outcome_unknown');
    expect(performance.now() - startedAt).toBeLessThan(1_500);
  });

  test('a header bomb is no answer', async () => {
    const port = await serve((_request, response) => {
      for (let index = 0; index < 200; index += 1) response.setHeader(`x-${index}`, 'a'.repeat(200));
      response.end('ok');
    });
    const { guarded } = network(port);
    expect((await refusal(guarded.request('https://files.example.com/', BOUNDS))).code).toBe(
      'outcome_unknown',
    );
  });

  test('as a fetch it streams, and fails with the same errors', async () => {
    const port = await serve((request, response) =>
      response.end(request.url === '/big' ? 'x'.repeat(50) : 'ok'),
    );
    const { guarded } = network(port);
    const fetch = guarded.asFetch({ maxBytes: 20, timeoutMs: 1_000 });
    expect(await (await fetch('https://files.example.com/')).text()).toBe('ok');
    const big = fetch('https://files.example.com/big').then((response) => response.text());
    expect(await refusal(big)).toEqual({ code: 'peer_error', reason: 'too_large' });
  });
});

describe('failures', () => {
  test('no connection means that nothing can have arrived', async () => {
    const closed = await serve(() => undefined);
    for (const close of closers.splice(0)) await close();
    const guarded = createGuardedFetch({ loopback: [`127.0.0.1:${closed}`] });
    const unresolved = createGuardedFetch(
      { loopback: [] },
      { resolve: async () => Promise.reject(new Error('ENOTFOUND')) },
    );
    closers.push(
      () => guarded.close(),
      () => unresolved.close(),
    );
    const bounds = { ...BOUNDS, method: 'POST', body: '{}' } as const;
    expect((await refusal(guarded.request(`http://127.0.0.1:${closed}/`, bounds))).code).toBe(
      'peer_unreachable',
    );
    expect((await refusal(unresolved.request('https://gone.example.com/', bounds))).code).toBe(
      'peer_unreachable',
    );
  });

  test('a name that never resolves ends with the time cap, as unreachable', async () => {
    const guarded = createGuardedFetch({ loopback: [] }, { resolve: () => new Promise(() => undefined) });
    closers.push(() => guarded.close());
    const found = await refusal(guarded.request('https://slow.example.com/', { maxBytes: 1, timeoutMs: 50 }));
    expect(found.code).toBe('peer_unreachable');
  });

  test('after a connection was made the outcome is unknown', async () => {
    const port = await serve((request, response) => {
      if (request.url === '/reset') response.destroy();
    });
    const { guarded } = network(port);
    const bounds = { maxBytes: 10, timeoutMs: 100, method: 'POST', body: '{}' } as const;
    for (const path of ['reset', 'silent']) {
      const found = await refusal(guarded.request(`https://files.example.com/${path}`, bounds));
      expect(found.code, path).toBe('outcome_unknown');
    }
  });

  test('reads no proxy setting of the environment', async () => {
    const port = await serve((_request, response) => response.end('direct'));
    const before = { ...process.env };
    Object.assign(process.env, {
      HTTP_PROXY: 'http://127.0.0.1:9',
      http_proxy: 'http://127.0.0.1:9',
      ALL_PROXY: 'x',
    });
    try {
      const guarded = createGuardedFetch({ loopback: [`127.0.0.1:${port}`] });
      closers.push(() => guarded.close());
      const answer = await guarded.request(`http://127.0.0.1:${port}/`, BOUNDS);
      expect(Buffer.from(await answer.bytes()).toString()).toBe('direct');
    } finally {
      process.env = before;
    }
  });
});
