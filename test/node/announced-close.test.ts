import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Holdfast, openHoldfast } from '../../src/index.js';
import { controlMessage } from '../../src/protocol/index.js';
import { CONTRACT, freePort, temporaryFolder } from '../cli/support.js';

/** Rounds by itself are an hour apart, so that what is asked here is asked because the peer was heard. */
const PACE = { sweepMs: 3_600_000, offerBackoffMs: [1, 2] } as const;

describe('a node that is closed while it asks a peer that it has just heard', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let triage: Holdfast;
  let billing: Holdfast;
  let server: Server;
  let port: number;
  /** Whether the peer takes connections. It answers no message. */
  let up: boolean;
  /** Messages to the peer, and how many of them were given up. */
  let asked: number;
  let gaveUp: number;

  beforeEach(async () => {
    folder = temporaryFolder();
    const ports = [await freePort(), await freePort()];
    const urls = ports.map((one) => `http://127.0.0.1:${one}`);
    const open = (at: 0 | 1, key: string) =>
      openHoldfast({
        dir: join(folder.path, String(at)),
        config: {
          agent: ['triage', 'billing'][at],
          url: urls[at],
          contracts: [CONTRACT],
          receives: [CONTRACT],
          kinds: { refund: { system_of_record: 'payments', mode: 'separate', contracts: [CONTRACT] } },
          peers: [{ url: urls[1 - at], key, contracts: [CONTRACT], skills: ['billing'] }],
          network: { loopback: urls.map((url) => url.slice('http://'.length)) },
          shutdown: '300ms',
          log: { level: 'silent' },
        },
        ports: { pace: PACE },
      });
    billing = await open(1, 'x'.repeat(43));
    triage = await open(0, billing.identity.thumbprint);
    up = false;
    asked = 0;
    gaveUp = 0;
    server = createServer((request, response) => {
      if (!up) return request.socket.destroy();
      const answer = (document: unknown) =>
        response.setHeader('content-type', 'application/json').end(JSON.stringify(document));
      if (request.url?.endsWith('jwks.json')) return answer(billing.identity.jwks());
      if (request.method === 'GET') {
        const one = { url: `${urls[1]}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' };
        return answer({ name: 'billing', supportedInterfaces: [one] });
      }
      asked += 1;
      request.socket.once('close', () => {
        gaveUp += 1;
      });
    });
    await new Promise<void>((resolve) => server.listen(ports[1], '127.0.0.1', resolve));
    ({ port } = await triage.start({ port: 0 }));
    // The round of the start finds nobody there.
    await vi.waitFor(async () =>
      expect((await triage.ledger.listAwaited(triage.url)).map(({ state }) => state)).toEqual(['waiting']),
    );
    await new Promise((resolve) => setTimeout(resolve, 100));
    up = true;
  });

  afterEach(async () => {
    await triage.close();
    await billing.close();
    server.closeAllConnections();
    server.close();
    folder.remove();
  });

  async function announce(): Promise<void> {
    const since = new Date().toISOString();
    const message = controlMessage({ verb: 'ledger.announce', incarnation: 'inc_b', since, open: [] });
    const response = await fetch(`http://127.0.0.1:${port}/a2a`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'a2a-version': '1.0',
        authorization: `Bearer ${await billing.identity.tokenFor(triage.url)}`,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
    });
    expect(await response.json()).toHaveProperty('result.message');
  }

  /** Names of what the ledger is asked for from now on. */
  function ledgerCalls(): string[] {
    const calls: string[] = [];
    const ledger = triage.ledger as unknown as Record<string, (...args: unknown[]) => unknown>;
    for (const name of Object.keys(ledger)) {
      const method = ledger[name];
      if (typeof method !== 'function') continue;
      vi.spyOn(ledger, name).mockImplementation((...args) => {
        calls.push(name);
        return method.apply(ledger, args);
      });
    }
    return calls;
  }

  it('[R-166] leaves no request behind where the peer does not answer, and is closed in the time it has', async () => {
    await announce();
    await vi.waitFor(() => expect(asked).toBe(1), { timeout: 5_000 });
    const began = performance.now();
    await triage.close();
    expect(performance.now() - began).toBeLessThan(3_000);
    const calls = ledgerCalls();
    await vi.waitFor(() => expect(gaveUp).toBe(1));
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect([asked, calls]).toEqual([1, []]);
  });

  it('[R-166] waits for what it still reads in its ledger, and asks nobody after', async () => {
    let read = () => {};
    const reading = new Promise<void>((resolve) => {
      read = resolve;
    });
    const { ledger } = triage;
    const before = ledger.listAwaited.bind(ledger);
    let begun = false;
    vi.spyOn(ledger, 'listAwaited').mockImplementation(async (agent) => {
      begun = true;
      await reading;
      return before(agent);
    });
    await announce();
    await vi.waitFor(() => expect(begun).toBe(true));
    let closed = false;
    const closing = triage.close().then(() => {
      closed = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(closed).toBe(false);
    read();
    await closing;
    const calls = ledgerCalls();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect([asked, calls]).toEqual([0, []]);
  });
});
