import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createProbe } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LedgerStore } from '../src/ledger/index.js';
import { CONTRACT_MODULE, core, storage, trust } from './built.js';
import { type Child, startChild } from './children.js';
import { CONTRACT, KIND, kindConfig, SKILL } from './offers.js';

const COMMAND = fileURLToPath(new URL('../bin/holdfast.js', import.meta.url));

/** A folder on the disk that is measured, removed at the end. */
export function workFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(process.env.HOLDFAST_BENCH_DIR ?? tmpdir(), 'holdfast-bench-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/**
 * A SQLite ledger at `file` as `fill` leaves it. It is filled where a sync costs nothing, if there is such a place, because filling is
 * not what is measured; then it is copied to the disk.
 */
export async function filledSqlite<T>(file: string, fill: (ledger: LedgerStore) => Promise<T>): Promise<T> {
  const memory = existsSync('/dev/shm') ? mkdtempSync('/dev/shm/holdfast-bench-') : null;
  try {
    const place = memory === null ? file : join(memory, 'ledger.db');
    const ledger = await storage.openSqliteLedger({ file: place });
    const filled = await fill(ledger);
    await ledger.close();
    if (memory !== null) {
      copyFileSync(place, file);
    }
    return filled;
  } finally {
    if (memory !== null) rmSync(memory, { recursive: true, force: true });
  }
}

export interface BenchSender {
  readonly url: string;
  readonly thumbprint: string;
  /** A bearer token of this sender for an audience, good for five minutes. */
  tokenFor(audience: string): Promise<string>;
  close(): Promise<void>;
}

/** The agent that the offers come from; it only has to serve its key. */
export async function startSender(): Promise<BenchSender> {
  let jwks: object = {};
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(jwks));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const privateJwk = await trust.generateNodeKey();
  const identity = await trust.createNodeIdentity({ url, privateJwk, clock: core.systemClock });
  jwks = identity.jwks();
  return {
    url,
    thumbprint: identity.thumbprint,
    tokenFor: (audience) => identity.tokenFor(audience),
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

export async function freeUrl(): Promise<string> {
  const probe = createProbe();
  await new Promise<void>((listening) => probe.listen(0, '127.0.0.1', listening));
  const { port } = probe.address() as AddressInfo;
  await new Promise((closed) => probe.close(closed));
  return `http://127.0.0.1:${port}`;
}

/** A real node, `holdfast serve` in a process of its own, that takes offers of the sender. */
export async function startNode(options: {
  readonly dir: string;
  /** Its identity: what peers sign their tokens for. */
  readonly url: string;
  /** Where it listens, if that is another address. */
  readonly at?: string;
  /** A file or a database URL. */
  readonly ledger: string;
  readonly sender: Pick<BenchSender, 'url' | 'thumbprint'>;
}): Promise<Child> {
  const { dir, url, at = url, ledger, sender } = options;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const config = {
    agent: 'billing',
    url,
    ledger,
    listen: { port: Number(new URL(at).port) },
    contracts: [CONTRACT_MODULE],
    receives: [CONTRACT],
    peers: [{ url: sender.url, key: sender.thumbprint, contracts: [CONTRACT], skills: [SKILL] }],
    kinds: {
      [KIND]: kindConfig,
    },
    network: { loopback: [new URL(sender.url).host] },
    // The load of this benchmark comes from one peer.
    limits: { peer_requests_per_minute: 1_000_000 },
    log: { level: 'error' },
  };
  writeFileSync(join(dir, 'holdfast.yaml'), JSON.stringify(config));
  const profile = process.env.HOLDFAST_BENCH_PROFILE;
  const profiled = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
  return startChild(process.execPath, [...profiled, COMMAND, 'serve', '--dir', dir, '--json'], {
    isReady: (line) => line.startsWith('{') && line.includes('"thumbprint"'),
  });
}
