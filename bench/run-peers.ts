import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { filledPostgres, startDatabase } from './databases.js';
import { compare, HOLDFAST_SQLITE, nodeSubject, offersNeeded, type Subject } from './http.js';
import { filledSqlite, freeUrl, startNode, startSender, workFolder } from './nodes.js';
import { prepareOffers } from './offers.js';
import { installPeers, type Peer, startDbos, startPgBoss, startRestate, startSdkStore } from './peers.js';
import { HOLDFAST_POSTGRES } from './postgres-http.js';
import { type Aim, type Row, rateIn, render, type Section } from './report.js';
import { measureWhole } from './whole.js';

const BOUNDS = { maxCount: 2_000, maxMs: 3_000 };
const LEVELS = [1, 16, 64];

/** Aim: how many times as fast as this row of the peers, at 64 in flight. */
const WHOLE_SQLITE = 'Holdfast, the whole path, SQLite';
const WHOLE_POSTGRES = 'Holdfast, the whole path, PostgreSQL';
const AIMS: readonly [ours: string, theirs: string, wanted: number][] = [
  [HOLDFAST_SQLITE, 'SDK with its SQLite store', 8],
  [HOLDFAST_POSTGRES, 'SDK with its PostgreSQL store', 4],
  [HOLDFAST_POSTGRES, 'Restate 1.7, two partitions', 3],
  [HOLDFAST_POSTGRES, 'pg-boss 10, woken', 3],
  [HOLDFAST_POSTGRES, 'DBOS 5, one step', 10],
  [WHOLE_SQLITE, 'Restate 1.7, two objects', 8],
  [WHOLE_SQLITE, 'DBOS 5, three steps', 10],
];

async function main(stops: (() => Promise<void>)[]): Promise<Section> {
  const folder = workFolder();
  stops.push(async () => folder.remove());
  const sender = await startSender();
  stops.push(() => sender.close());
  const postgres = await startDatabase();
  stops.push(() => postgres.remove());
  const notes: string[] = [];
  const subjects: Subject[] = [];
  const wholes: Subject[] = [];

  const needed = offersNeeded(LEVELS, BOUNDS);
  const [url, postgresUrl] = [await freeUrl(), await freeUrl()];
  const file = join(folder.path, 'ledger.db');
  const offers = await filledSqlite(file, (ledger) =>
    prepareOffers(ledger, { sender: sender.url, receiver: url }, needed),
  );
  const node = await startNode({ dir: join(folder.path, 'billing'), url, ledger: file, sender });
  stops.push(() => node.stop());
  subjects.push(nodeSubject(HOLDFAST_SQLITE, { url, pid: node.pid }, sender, offers));

  const onPostgres = await filledPostgres(postgres, (ledger) =>
    prepareOffers(ledger, { sender: sender.url, receiver: postgresUrl }, needed),
  );
  const second = await startNode({
    dir: join(folder.path, 'billing-postgres'),
    url: postgresUrl,
    ledger: onPostgres.url,
    sender,
  });
  stops.push(() => second.stop());
  subjects.push(
    nodeSubject(HOLDFAST_POSTGRES, { url: postgresUrl, pid: second.pid }, sender, onPostgres.filled),
  );
  // Peers make no use of a ledger: to them the same offers under other case ids are new ones.
  const wholeOffers = offers.map(({ ref, key, ...rest }) => ({
    ...rest,
    ref: { ...ref, caseId: `W-${ref.caseId}` },
    key: { ...key, handoffId: `W-${key.handoffId}` },
  }));

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
      if (peer.whole) wholes.push(peer.whole);
    } catch (error) {
      // The others are still worth measuring.
      notes.push(`left out: ${name}, which could not be started (${String(error).slice(0, 400)})`);
    }
  }
  const rows = await compare(subjects, LEVELS, BOUNDS);
  rows.push(...(await compare(wholes, LEVELS, BOUNDS)));
  const databases = [
    [WHOLE_SQLITE, join(folder.path, 'whole.db')],
    [WHOLE_POSTGRES, await postgres.createDatabase()],
  ] as const;
  for (const [what, ledger] of databases) {
    const dir = join(folder.path, what.endsWith('SQLite') ? 'whole-sqlite' : 'whole-postgres');
    for (const each of await measureWhole(dir, ledger, LEVELS, { maxCount: 1_500, maxMs: 4_000 })) {
      rows.push({ what, ...each });
    }
  }
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
