import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { AcceptCommand } from '../src/ledger/index.js';
import { storage } from './built.js';
import { copyDatabase, filledPostgres, startDatabase } from './databases.js';
import { type Bounds, drive, type Rate, rateOf } from './measure.js';
import { workFolder } from './nodes.js';
import { acceptCommandOf, prepareOffers } from './offers.js';
import { type Row, rateIn, type Section } from './report.js';

const PARTIES = { sender: 'http://127.0.0.1:4101', receiver: 'http://127.0.0.1:4102' };
const LEVELS = [1, 16, 32, 64];
const BOUNDS: Bounds = { maxCount: 1_600, maxMs: 5_000 };
const WARM_UP = 200;
const LIBRARY = 'ledger.accept, PostgreSQL';
const STATEMENT = 'SELECT * FROM holdfast.commit(NULL, true, $1)';

/** What the library sends to carry out each acceptance, as the parameter of its one statement. */
async function record(url: string, commands: readonly AcceptCommand[]): Promise<string[]> {
  const sent: string[] = [];
  const query = pg.Client.prototype.query;
  const patched = function (this: pg.Client, ...given: unknown[]) {
    const { text, values } = (given[0] ?? {}) as { text?: string; values?: unknown[] };
    if (text?.includes('holdfast.commit(') && typeof values?.at(-1) === 'string')
      sent.push(values.at(-1) as string);
    return Reflect.apply(query as (...all: unknown[]) => unknown, this, given);
  };
  pg.Client.prototype.query = patched as typeof query;
  try {
    const ledger = await storage.openLedger(url);
    for (const command of commands) await ledger.accept(command);
    await ledger.close();
  } finally {
    pg.Client.prototype.query = query;
  }
  if (sent.length !== commands.length)
    throw new Error(`${sent.length} statements for ${commands.length} acceptances`);
  return sent;
}

/** `pgbench` calls the same function with the same commands, which it reads from a table, so that it sends less than the library does. */
async function runPgbench(
  url: string,
  folder: string,
  clients: number,
  commands: readonly string[],
): Promise<Rate> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('CREATE TABLE public.commands (id integer PRIMARY KEY, command text NOT NULL)');
  await client.query(
    'INSERT INTO public.commands SELECT n, command FROM unnest($1::text[]) WITH ORDINALITY AS t (command, n)',
    [commands],
  );
  await client.query('VACUUM ANALYZE public.commands');
  await client.end();
  const script = join(folder, 'pgbench.sql');
  const share = Math.floor(commands.length / clients);
  writeFileSync(
    script,
    [
      '\\set n :n + 1',
      '\\set id :client_id * :share + :n',
      'SELECT * FROM holdfast.commit(NULL, true, (SELECT command::jsonb FROM public.commands WHERE id = :id));',
    ].join('\n'),
  );
  const { hostname, port, username, password, pathname } = new URL(url);
  const prefix = join(folder, `pgbench-${clients}`);
  const ran = spawnSync(
    'pgbench',
    [
      ...['--no-vacuum', '--protocol=prepared', '--log', `--log-prefix=${prefix}`, `--file=${script}`],
      ...['-D', 'n=0', '-D', `share=${share}`, `--client=${clients}`, '--jobs=1', `--transactions=${share}`],
      ...['--host', hostname, '--port', port, '--username', username, pathname.slice(1)],
    ],
    { encoding: 'utf8', timeout: 60_000, env: { ...process.env, PGPASSWORD: decodeURIComponent(password) } },
  );
  if (ran.status !== 0) throw new Error(`pgbench: ${ran.stderr.slice(-500)}`);
  const perSecond = Number(/tps = ([0-9.]+)/.exec(ran.stdout)?.[1]);
  const log = readdirSync(folder).filter((name) => name.startsWith(`pgbench-${clients}.`));
  const lines = log.flatMap((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n'));
  const tookMs = Float64Array.from(lines, (line) => Number(line.split(' ')[2]) / 1000);
  return { ...rateOf(tookMs, 1000), perSecond };
}

/** Where there is no `pgbench`: the same statement from plain `pg` connections, which costs the client more. */
async function runLoop(url: string, clients: number, commands: readonly string[]): Promise<Rate> {
  const all = Array.from({ length: clients }, () => new pg.Client({ connectionString: url }));
  await Promise.all(all.map((client) => client.connect()));
  const rate = await drive(clients, { ...BOUNDS, maxCount: commands.length }, async (index, lane) =>
    all[lane]?.query({ name: 'commit', text: STATEMENT, values: [commands[index]] }),
  );
  await Promise.all(all.map((client) => client.end()));
  return rate;
}

export async function acceptOnPostgres(): Promise<Section> {
  const hasPgbench = spawnSync('pgbench', ['--version']).status === 0;
  const beside = hasPgbench ? 'pgbench, the same statement' : 'pg loop, the same statement';
  const folder = workFolder();
  const server = await startDatabase();
  try {
    const total = BOUNDS.maxCount + WARM_UP;
    const { url, filled } = await filledPostgres(server, (ledger) => prepareOffers(ledger, PARTIES, total));
    const commands = filled.map((offer) => acceptCommandOf(offer, PARTIES));
    const sent = await record(
      await copyDatabase(server, url, 'recorded'),
      commands.slice(0, BOUNDS.maxCount),
    );
    const rows: Row[] = [];
    for (const inFlight of LEVELS) {
      const count = inFlight === 1 ? 400 : BOUNDS.maxCount;
      const raw = await copyDatabase(server, url, `raw_${inFlight}`);
      const rate = hasPgbench
        ? await runPgbench(raw, folder.path, inFlight, sent.slice(0, count))
        : await runLoop(raw, inFlight, sent.slice(0, count));
      rows.push({ what: beside, inFlight, rate });
      const ledger = await storage.openLedger(await copyDatabase(server, url, `library_${inFlight}`));
      await drive(16, { maxCount: WARM_UP, maxMs: 5_000 }, (index) =>
        ledger.accept(commands[BOUNDS.maxCount + index] as AcceptCommand),
      );
      rows.push({
        what: LIBRARY,
        inFlight,
        rate: await drive(inFlight, { ...BOUNDS, maxCount: count }, (index) =>
          ledger.accept(commands[index] as AcceptCommand),
        ),
      });
      await ledger.close();
    }
    return {
      name: 'accept-postgres',
      rows,
      aims: [
        {
          what: `acceptance, PostgreSQL, 32 in flight / ${beside}`,
          got: rateIn(rows, LIBRARY, 32).perSecond / rateIn(rows, beside, 32).perSecond,
          wanted: 0.7,
          bound: 'at least',
        },
      ],
      notes: hasPgbench
        ? []
        : ['pgbench is not installed here: a loop of plain pg connections stands in for it.'],
    };
  } finally {
    await server.remove();
    folder.remove();
  }
}
