import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Child, startChild } from './children.js';
import { type Subject, sendRequests } from './http.js';
import { requestBytes } from './http-load.js';
import { freeUrl } from './nodes.js';
import type { PreparedOffer } from './offers.js';

const PEERS = fileURLToPath(new URL('peers/', import.meta.url));
const serverFile = (name: string) => join(PEERS, 'servers', `${name}.mjs`);
const binary = (path: string) => join(PEERS, 'node_modules', path);
/** Nothing that is measured may call anybody. */
const QUIET = { DO_NOT_TRACK: '1', SCARF_ANALYTICS: 'false', RESTATE_DISABLE_TELEMETRY: 'true' };

/** Installs the peers from their own lockfile, without running any of their install scripts. */
export function installPeers(): void {
  const args = ['ci', '--prefix', PEERS, '--ignore-scripts', '--no-audit', '--no-fund'];
  const env = { ...process.env, ...QUIET };
  execFileSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'], timeout: 600_000, env });
}

/** One peer that runs, under the load that everybody gets. */
export interface Peer {
  readonly accept: Subject;
  /** Intent, acceptance and release in one request, where the peer has that. */
  readonly whole?: Subject;
  stop(): Promise<void>;
}

/** What a peer decides on: the same document, with its identity on top. */
function peerRequests(url: string, offers: readonly PreparedOffer[], more: object): Buffer[] {
  return offers.map(({ ref, key, canonical, digest }) => {
    const envelope = JSON.parse(canonical);
    const { handoffId: handoff_id, attempt } = key;
    const head = { case_id: ref.caseId, to_agent: envelope.to_agent, epoch: 1, handoff_id, attempt, digest };
    const body = JSON.stringify({ ...head, envelope, ...more });
    return requestBytes(url.replace('CASE_ID', ref.caseId), { 'content-type': 'application/json' }, body);
  });
}

function subjectOf(
  what: string,
  url: string,
  pid: number,
  make: (offers: readonly PreparedOffer[]) => Buffer[],
  offers: readonly PreparedOffer[],
): Subject {
  let used = 0;
  return {
    what,
    url,
    pid,
    async next(count) {
      const taken = offers.slice(used, used + count);
      used += taken.length;
      return make(taken);
    },
  };
}

/** The SDK with the database store that it ships, on tables that its own tool makes. */
export async function startSdkStore(
  engine: 'sqlite' | 'postgres',
  target: string,
  offers: readonly PreparedOffer[],
): Promise<Peer> {
  const database = engine === 'sqlite' ? `sqlite:${target}` : target;
  execFileSync(process.execPath, [binary('.bin/a2a-db'), 'upgrade', '--url', database], {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 60_000,
    cwd: PEERS,
  });
  const child = await startChild(process.execPath, [serverFile('sdk-store'), engine, target], { env: QUIET });
  const name = engine === 'sqlite' ? 'SQLite' : 'PostgreSQL';
  const make = (taken: readonly PreparedOffer[]) => sendRequests(taken, child.ready, 'none');
  return {
    accept: subjectOf(`SDK with its ${name} store`, child.ready, child.pid, make, offers),
    stop: () => child.stop(),
  };
}

export async function startPgBoss(database: string, offers: readonly PreparedOffer[]): Promise<Peer> {
  const child = await startChild(process.execPath, [serverFile('pg-boss'), database], { env: QUIET });
  const make = (taken: readonly PreparedOffer[]) => peerRequests(child.ready, taken, {});
  return {
    accept: subjectOf('pg-boss 10, woken', child.ready, child.pid, make, offers),
    stop: () => child.stop(),
  };
}

export async function startDbos(
  database: string,
  offers: readonly PreparedOffer[],
  wholeOffers: readonly PreparedOffer[],
): Promise<Peer> {
  const child = await startChild(process.execPath, [serverFile('dbos'), database], {
    env: QUIET,
    isReady: (line) => line.startsWith('http://'),
  });
  const make = (whole: boolean) => (taken: readonly PreparedOffer[]) =>
    peerRequests(child.ready, taken, { whole });
  return {
    accept: subjectOf('DBOS 5, one step', child.ready, child.pid, make(false), offers),
    whole: subjectOf('DBOS 5, three steps', child.ready, child.pid, make(true), wholeOffers),
    stop: () => child.stop(),
  };
}

/** Restate's own server on files in `folder`, with two partitions for two cores, and the services in a process of their own. */
export async function startRestate(
  folder: string,
  offers: readonly PreparedOffer[],
  wholeOffers: readonly PreparedOffer[],
): Promise<Peer> {
  const [node, ingress, admin] = [await freeUrl(), await freeUrl(), await freeUrl()];
  const port = (url: string) => Number(new URL(url).port);
  const config = join(folder, 'restate.toml');
  writeFileSync(
    config,
    [
      `base-dir = ${JSON.stringify(join(folder, 'restate'))}`,
      'node-name = "bench"',
      'cluster-name = "bench"',
      'listen-mode = "tcp"',
      'bind-ip = "127.0.0.1"',
      'advertised-host = "127.0.0.1"',
      `bind-port = ${port(node)}`,
      'default-num-partitions = 2',
      'disable-telemetry = true',
      'log-filter = "warn"',
      '[ingress]',
      `bind-port = ${port(ingress)}`,
      '[admin]',
      `bind-port = ${port(admin)}`,
    ].join('\n'),
  );
  const children: Child[] = [];
  const stop = async () => {
    for (const child of children) await child.stop();
  };
  try {
    const services = await startChild(process.execPath, [serverFile('restate')], {
      env: QUIET,
      isReady: (line) => line.startsWith('http://'),
    });
    children.push(services);
    const server = await startChild(
      binary(`@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`),
      ['--config-file', config, '--no-logo'],
      { env: QUIET, needsLine: false },
    );
    children.push(server);
    await until(() => fetch(`${admin}/health`).then(({ ok }) => ok));
    const made = await fetch(`${admin}/deployments`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ uri: services.ready }),
    });
    if (!made.ok) throw new Error(`Restate does not take the services: ${made.status} ${await made.text()}`);
    const acceptUrl = `${ingress}/receiver/CASE_ID/accept`;
    const wholeUrl = `${ingress}/sender/CASE_ID/handOff`;
    const make = (url: string) => (taken: readonly PreparedOffer[]) => peerRequests(url, taken, {});
    return {
      accept: subjectOf('Restate 1.7, two partitions', ingress, server.pid, make(acceptUrl), offers),
      whole: subjectOf('Restate 1.7, two objects', ingress, server.pid, make(wholeUrl), wholeOffers),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function until(isSo: () => Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await isSo().catch(() => false))) {
    if (performance.now() > end) throw new Error('a server was not ready in time');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
