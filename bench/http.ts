import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cpuMsOf, startChild } from './children.js';
import { Connection, requestBytes } from './http-load.js';
import { type Bounds, drive } from './measure.js';
import { type BenchSender, filledSqlite, freeUrl, startNode, startSender, workFolder } from './nodes.js';
import { type PreparedOffer, prepareOffers } from './offers.js';
import { type Row, rateIn, type Section } from './report.js';

const SDK_SERVER = fileURLToPath(new URL('servers/sdk.mjs', import.meta.url));
const LEVELS = [1, 16, 64];
const BOUNDS: Bounds = { maxCount: 3_000, maxMs: 3_000 };
const WARM_UP = 1_000;

export const HOLDFAST_SQLITE = 'Holdfast over HTTP, SQLite';
const BARE_SDK = 'bare SDK over HTTP, in memory';

/** `SendMessage` with these offers, as a peer would send it. */
export function sendRequests(offers: readonly PreparedOffer[], url: string, token: string): Buffer[] {
  const headers = {
    'content-type': 'application/json',
    'a2a-version': '1.0',
    authorization: `Bearer ${token}`,
  };
  return offers.map(({ message }, at) =>
    requestBytes(
      url,
      headers,
      `{"jsonrpc":"2.0","id":${at},"method":"SendMessage","params":{"message":${message}}}`,
    ),
  );
}

/** Sends the requests one after another on each of `inFlight` connections, and fails on the first answer that is no acceptance. */
export async function sendAll(url: string, inFlight: number, requests: readonly Buffer[], bounds: Bounds) {
  const connections = Array.from({ length: inFlight }, () => new Connection(url));
  try {
    return await drive(
      inFlight,
      { ...bounds, maxCount: Math.min(bounds.maxCount, requests.length) },
      async (index, lane) => {
        const answer = await connections[lane]?.send(requests[index] as Buffer);
        if (answer?.status !== 200 || !answer.body.includes('"accepted":true'))
          throw new Error(`not accepted: ${answer?.status} ${answer?.body.slice(0, 500)}`);
      },
    );
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** One subject under the load of this file: where to send, and how the next requests are made. */
export interface Subject {
  readonly what: string;
  readonly url: string;
  /** Of the process that serves it. */
  readonly pid: number;
  next(count: number): Promise<Buffer[]>;
}

export function nodeSubject(
  what: string,
  node: { readonly url: string; readonly pid: number },
  sender: BenchSender,
  offers: readonly PreparedOffer[],
): Subject {
  const { url, pid } = node;
  let used = 0;
  return {
    what,
    url: `${url}/a2a`,
    pid,
    async next(count) {
      const taken = offers.slice(used, used + count);
      used += taken.length;
      return sendRequests(taken, `${url}/a2a`, await sender.tokenFor(url));
    },
  };
}

/** All subjects at each level in turn, so that a slower minute of the machine hits all of them. */
export async function compare(
  subjects: readonly Subject[],
  levels = LEVELS,
  bounds = BOUNDS,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const subject of subjects) {
    const warm = await subject.next(WARM_UP);
    await sendAll(subject.url, 16, warm, { maxCount: WARM_UP, maxMs: 15_000 });
  }
  for (const inFlight of levels) {
    for (const subject of subjects) {
      const requests = await subject.next(countFor(inFlight, bounds));
      const before = cpuMsOf(subject.pid);
      const rate = await sendAll(subject.url, inFlight, requests, bounds).catch((cause: unknown) => {
        throw new Error(`${subject.what}, ${inFlight} in flight: ${cause}`, { cause });
      });
      const after = cpuMsOf(subject.pid);
      const cpu = before === null || after === null ? {} : { cpuMs: (after - before) / rate.count };
      rows.push({ what: subject.what, inFlight, rate: { ...rate, ...cpu } });
    }
  }
  return rows;
}

/** With one in flight far fewer are used up in the time. */
function countFor(inFlight: number, { maxCount }: Bounds): number {
  return inFlight === 1 ? Math.ceil(maxCount / 3) : maxCount;
}

export function offersNeeded(levels = LEVELS, bounds = BOUNDS): number {
  return WARM_UP + levels.reduce((sum, inFlight) => sum + countFor(inFlight, bounds), 0);
}

/** The bare SDK in a process of its own. It keeps nothing, so it can be sent the same offers again. */
export async function startBareSdk(
  offers: readonly PreparedOffer[],
): Promise<Subject & { stop(): Promise<void> }> {
  const child = await startChild(process.execPath, [SDK_SERVER]);
  return {
    what: BARE_SDK,
    url: child.ready,
    pid: child.pid,
    next: async (count) => sendRequests(offers.slice(0, count), child.ready, 'none'),
    stop: () => child.stop(),
  };
}

export async function httpOnSqlite(): Promise<Section> {
  const folder = workFolder();
  const sender = await startSender();
  const running: { stop(): Promise<void> }[] = [];
  try {
    const url = await freeUrl();
    const file = join(folder.path, 'ledger.db');
    const offers = await filledSqlite(file, (ledger) =>
      prepareOffers(ledger, { sender: sender.url, receiver: url }, offersNeeded()),
    );
    const node = await startNode({ dir: join(folder.path, 'billing'), url, ledger: file, sender });
    running.push(node);
    const bare = await startBareSdk(offers);
    running.push(bare);
    const rows = await compare([nodeSubject(HOLDFAST_SQLITE, { url, pid: node.pid }, sender, offers), bare]);
    const [ours, theirs] = [rateIn(rows, HOLDFAST_SQLITE, 64), rateIn(rows, BARE_SDK, 64)];
    return {
      name: 'http-sqlite',
      rows,
      aims: [
        {
          what: 'pipeline over HTTP on SQLite / bare SDK in memory, 64 in flight',
          got: ours.perSecond / theirs.perSecond,
          wanted: 2,
          bound: 'at least',
        },
        {
          what: 'p99 of the pipeline / p99 of the bare SDK, 64 in flight',
          got: ours.p99Ms / theirs.p99Ms,
          wanted: 1,
          bound: 'at most',
        },
      ],
      notes: [],
    };
  } finally {
    for (const each of running) await each.stop();
    await sender.close();
    folder.remove();
  }
}
