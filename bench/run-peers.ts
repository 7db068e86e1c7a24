import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { startPostgres } from '../test/postgres/server.js';
import { compare, HOLDFAST_SQLITE, nodeSubject, offersNeeded, type Subject } from './http.js';
import { filledSqlite, freeUrl, startNode, startSender, workFolder } from './nodes.js';
import { prepareOffers } from './offers.js';
import { installPeers, type Peer, startDbos, startPgBoss, startRestate, startSdkStore } from './peers.js';
import { type Aim, type Row, rateIn, render, type Section } from './report.js';

const BOUNDS = { maxCount: 6_000, maxMs: 4_000 };
const LEVELS = [1, 16, 64];

/** Aim: how many times as fast as this row of the peers, at 64 in flight. */
const AIMS: readonly [ours: string, theirs: string, wanted: number][] = [
  [HOLDFAST_SQLITE, 'SDK with its SQLite store', 8],
];

async function main(stops: (() => Promise<void>)[]): Promise<Section> {
  const folder = workFolder();
  stops.push(async () => folder.remove());
  const sender = await startSender();
  stops.push(() => sender.close());
  const postgres = await startPostgres({ settings: { shared_buffers: '256MB' } });
  stops.push(() => postgres.remove());
  const notes: string[] = [];
  const subjects: Subject[] = [];

  const url = await freeUrl();
  const file = join(folder.path, 'ledger.db');
  const offers = await filledSqlite(file, (ledger) =>
    prepareOffers(ledger, { sender: sender.url, receiver: url }, offersNeeded(LEVELS, BOUNDS)),
  );
  const node = await startNode({ dir: join(folder.path, 'billing'), url, ledger: file, sender });
  stops.push(() => node.stop());
  subjects.push(nodeSubject(HOLDFAST_SQLITE, { url, pid: node.pid }, sender, offers));

  const peers: readonly [name: string, start: () => Promise<Peer>][] = [
    ['SDK, SQLite', () => startSdkStore('sqlite', join(folder.path, 'sdk.db'), offers)],
    ['SDK, PostgreSQL', async () => startSdkStore('postgres', await postgres.createDatabase(), offers)],
    ['pg-boss', async () => startPgBoss(await postgres.createDatabase(), offers)],
    ['DBOS', async () => startDbos(await postgres.createDatabase(), offers, wholeOffers)],
    ['Restate', () => startRestate(folder.path, offers, wholeOffers)],
  ];
  for (const [name, start] of peers) {
    try {
      const peer = await start();
      stops.push(() => peer.stop());
      subjects.push(peer.accept);
    } catch (error) {
      // The others are still worth measuring.
      notes.push(`left out: ${name}, which could not be started (${String(error).slice(0, 400)})`);
    }
  }
  const rows = await compare(subjects, LEVELS, BOUNDS);
  return { name: 'peers', rows, aims: aimsOf(rows), notes };
}

function aimsOf(rows: readonly Row[]): Aim[] {
  return AIMS.filter(([, theirs]) => rows.some(({ what }) => what === theirs)).map(
    ([ours, theirs, wanted]) => ({
      what: `${ours} / ${theirs}, 64 in flight`,
      got: rateIn(rows, ours, 64).perSecond / rateIn(rows, theirs, 64).perSecond,
      wanted,
      bound: 'at least',
    }),
  );
}

/** Loopback is the only network there is in here: some of what is measured asks for a newer release of itself when it starts. */
const WITHOUT_NETWORK = ['--net', 'sh', '-c', 'ip link set lo up && exec "$0" "$@"'];
const isIsolated = process.env.HOLDFAST_BENCH_ISOLATED === '1';

if (isIsolated || spawnSync('unshare', [...WITHOUT_NETWORK, 'true']).status !== 0) {
  if (!isIsolated) installPeers();
  const stops: (() => Promise<void>)[] = [];
  try {
    const section = await main(stops);
    process.stdout.write(process.argv.includes('--json') ? `${JSON.stringify(section)}\n` : render(section));
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
} else {
  installPeers();
  const again = [...WITHOUT_NETWORK, process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const env = { ...process.env, HOLDFAST_BENCH_ISOLATED: '1' };
  process.exitCode = spawnSync('unshare', again, { stdio: 'inherit', env }).status ?? 1;
}
