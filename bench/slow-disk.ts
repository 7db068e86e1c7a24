import { spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Rate } from './measure.js';
import { filledSqlite, workFolder } from './nodes.js';
import { acceptCommandOf, prepareOffers } from './offers.js';
import { type Row, rateIn, type Section } from './report.js';

const PARTIES = { sender: 'http://127.0.0.1:4101', receiver: 'http://127.0.0.1:4102' };
const COUNT = 3_000;
const DELAY_US = 2_000;
const WORKER = fileURLToPath(new URL('servers/accept.mjs', import.meta.url));
const SHARED = 'ledger.accept, 2 ms more per fsync';
const ALONE = 'one transaction per request';

/** What a slow disk costs, and what sharing a commit gives back: a tracer makes every fsync of the process take longer. */
export async function slowDisk(): Promise<Section> {
  const name = 'slow-disk';
  if (spawnSync('strace', ['-V']).status !== 0) {
    return {
      name,
      rows: [],
      aims: [],
      notes: ['skipped: strace, which makes each fsync slower, is not installed here'],
    };
  }
  const folder = workFolder();
  try {
    const filled = join(folder.path, 'filled.db');
    const offers = await filledSqlite(filled, (ledger) => prepareOffers(ledger, PARTIES, COUNT));
    const commands = join(folder.path, 'commands.json');
    writeFileSync(commands, JSON.stringify(offers.map((offer) => acceptCommandOf(offer, PARTIES))));
    const measure = (inFlight: number): Rate => {
      const file = join(folder.path, `${inFlight}.db`);
      copyFileSync(filled, file);
      const args = [
        ...['-f', '--seccomp-bpf', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync'],
        ...['-e', `inject=fsync,fdatasync:delay_exit=${DELAY_US}`],
        ...[process.execPath, WORKER, file, commands, String(inFlight)],
      ];
      const ran = spawnSync('strace', args, { encoding: 'utf8', timeout: 60_000 });
      if (ran.status !== 0) throw new Error(`under strace: ${ran.stderr.slice(-500)}`);
      return JSON.parse(ran.stdout);
    };
    const rows: Row[] = [
      // One at a time is one transaction per request: SQLite has one writer.
      { what: ALONE, inFlight: 1, rate: measure(1) },
      { what: SHARED, inFlight: 64, rate: measure(64) },
    ];
    const got = rateIn(rows, SHARED, 64).perSecond / rateIn(rows, ALONE, 1).perSecond;
    return {
      name,
      rows,
      aims: [
        {
          what: 'shared commits on a slow disk, 64 in flight / one transaction per request',
          got,
          wanted: 10,
          bound: 'at least',
        },
      ],
      notes: [],
    };
  } finally {
    folder.remove();
  }
}
