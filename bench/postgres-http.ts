import { join } from 'node:path';
import type { PostgresServer } from '../test/postgres/server.js';
import { copyDatabase, filledPostgres, startDatabase } from './databases.js';
import { compare, nodeSubject, offersNeeded, sendAll, sendRequests, startBareSdk } from './http.js';
import { rateOf } from './measure.js';
import { type BenchSender, freeUrl, startNode, startSender, workFolder } from './nodes.js';
import { type PreparedOffer, prepareOffers } from './offers.js';
import { type Row, rateIn, type Section } from './report.js';

const BOUNDS = { maxCount: 2_000, maxMs: 3_000 };
const LEVELS = [1, 16, 64];
export const HOLDFAST_POSTGRES = 'Holdfast over HTTP, PostgreSQL';

/** What every benchmark of nodes on PostgreSQL starts from; `work` gets it, and all of it ends with `work`. */
async function withNodes<T>(
  count: number,
  work: (given: {
    readonly server: PostgresServer;
    readonly sender: BenchSender;
    readonly database: string;
    readonly offers: readonly PreparedOffer[];
    readonly url: string;
    /** Another process of the same agent, at another address. */
    start(database: string, at?: string): Promise<{ readonly url: string; readonly pid: number }>;
    later(stop: () => Promise<void>): void;
  }) => Promise<T>,
): Promise<T> {
  const folder = workFolder();
  const stops: (() => Promise<void>)[] = [async () => folder.remove()];
  try {
    const sender = await startSender();
    stops.push(() => sender.close());
    const server = await startDatabase();
    stops.push(() => server.remove());
    const url = await freeUrl();
    const { url: database, filled: offers } = await filledPostgres(server, (ledger) =>
      prepareOffers(ledger, { sender: sender.url, receiver: url }, count),
    );
    let started = 0;
    const start = async (on: string, at = url) => {
      const dir = join(folder.path, `node-${started++}`);
      const node = await startNode({ dir, url, at, ledger: on, sender });
      stops.push(() => node.stop());
      return { url: at, pid: node.pid };
    };
    return await work({
      server,
      sender,
      database,
      offers,
      url,
      start,
      later: (stop) => void stops.push(stop),
    });
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

export function httpOnPostgres(): Promise<Section> {
  return withNodes(offersNeeded(LEVELS, BOUNDS), async ({ sender, database, offers, start, later }) => {
    const bare = await startBareSdk(offers);
    later(() => bare.stop());
    const node = await start(database);
    const rows = await compare([nodeSubject(HOLDFAST_POSTGRES, node, sender, offers), bare], LEVELS, BOUNDS);
    const ratio = rateIn(rows, HOLDFAST_POSTGRES, 64).perSecond / rateIn(rows, bare.what, 64).perSecond;
    const notes = [
      `pipeline over HTTP on PostgreSQL / bare SDK in memory, 64 in flight: ${ratio.toFixed(2)} x`,
    ];
    return { name: 'http-postgres', rows, aims: [], notes };
  });
}

const ONE = 'one node on one PostgreSQL';
const THREE = 'three nodes on one PostgreSQL';
const CONTENDED = 'three nodes, one case contended by 16 more';
const EACH = 2_000;

/** All offers through these nodes, an equal number of connections to each. */
async function through(
  nodes: readonly { readonly url: string }[],
  audience: string,
  sender: BenchSender,
  offers: readonly PreparedOffer[],
) {
  const token = await sender.tokenFor(audience);
  const begun = performance.now();
  const rates = await Promise.all(
    nodes.map(({ url }, at) => {
      const mine = offers.filter((_, index) => index % nodes.length === at);
      const requests = sendRequests(mine, `${url}/a2a`, token);
      return sendAll(url, Math.ceil(64 / nodes.length), requests, { maxCount: mine.length, maxMs: 5_000 });
    }),
  );
  const count = rates.reduce((sum, rate) => sum + rate.count, 0);
  const all = rateOf(new Float64Array(0), 1);
  return {
    ...all,
    perSecond: (count / (performance.now() - begun)) * 1000,
    p50Ms: Math.max(...rates.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...rates.map(({ p99Ms }) => p99Ms)),
    count,
  };
}

/** The offer of one case, again and again: each delivery of a decided offer is one more write to that case. */
async function contend(
  url: string,
  token: string,
  offer: PreparedOffer,
  until: Promise<unknown>,
): Promise<void> {
  let over = false;
  void until.finally(() => {
    over = true;
  });
  const request = sendRequests([offer], `${url}/a2a`, token);
  while (!over) await sendAll(url, 16, Array(160).fill(request[0]), { maxCount: 160, maxMs: 2_000 });
}

export function threeNodes(): Promise<Section> {
  return withNodes(EACH + 64, async ({ server, sender, database, offers, url, start }) => {
    const names = ['one', 'three', 'contended'] as const;
    const rows: Row[] = [];
    const databases = new Map<string, string>();
    for (const name of names) databases.set(name, await copyDatabase(server, database, name));
    const measured = offers.slice(0, EACH);
    const spare = offers[EACH] as PreparedOffer;
    for (const name of names) {
      const on = databases.get(name) as string;
      const addresses = name === 'one' ? [url] : [url, await freeUrl(), await freeUrl()];
      const nodes = await Promise.all(addresses.map((at) => start(on, at)));
      const work = through(nodes, url, sender, measured);
      const token = await sender.tokenFor(url);
      const rival =
        name === 'contended' ? contend(nodes[1]?.url ?? url, token, spare, work) : Promise.resolve();
      const rate = await work;
      await rival;
      rows.push({ what: { one: ONE, three: THREE, contended: CONTENDED }[name], inFlight: 64, rate });
      for (const node of nodes) process.kill(node.pid, 'SIGTERM');
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    const rateOfRow = (what: string) => rateIn(rows, what, 64).perSecond;
    return {
      name: 'three-nodes',
      rows,
      aims: [
        {
          what: 'three nodes on one PostgreSQL / one node',
          got: rateOfRow(THREE) / rateOfRow(ONE),
          wanted: 1,
          bound: 'at least',
        },
        {
          what: 'speed of the others beside a contended case',
          got: rateOfRow(CONTENDED) / rateOfRow(THREE),
          wanted: 0.9,
          bound: 'at least',
        },
      ],
      notes: [],
    };
  });
}
