import { join } from 'node:path';
import { memoryMbOf } from './children.js';
import { HOLDFAST_SQLITE, nodeSubject, sendAll } from './http.js';
import { filledSqlite, freeUrl, startNode, startSender, workFolder } from './nodes.js';
import { prepareOffers } from './offers.js';
import type { Row, Section } from './report.js';

const ROUNDS = 6;
const EACH = 3_000;

/** What a node holds in memory after some thousands of handovers, and after some times as many. */
export async function memory(): Promise<Section> {
  const folder = workFolder();
  const sender = await startSender();
  try {
    const url = await freeUrl();
    const file = join(folder.path, 'ledger.db');
    const parties = { sender: sender.url, receiver: url };
    const offers = await filledSqlite(file, (ledger) => prepareOffers(ledger, parties, ROUNDS * EACH));
    const node = await startNode({ dir: join(folder.path, 'billing'), url, ledger: file, sender });
    try {
      const subject = nodeSubject(HOLDFAST_SQLITE, { url, pid: node.pid }, sender, offers);
      const rows: Row[] = [];
      const held: number[] = [];
      let count = 0;
      for (let round = 0; round < ROUNDS; round += 1) {
        const rate = await sendAll(subject.url, 64, await subject.next(EACH), {
          maxCount: EACH,
          maxMs: 20_000,
        });
        count += rate.count;
        const mb = memoryMbOf(node.pid);
        if (mb === null) return { name: 'memory', rows, aims: [], notes: ['skipped: no /proc here'] };
        held.push(mb);
        rows.push({ what: `${Math.round(mb)} MB after ${count.toLocaleString('en')}`, inFlight: 64, rate });
      }
      const [second = 0, last = 0] = [held[1], held.at(-1)];
      return {
        name: 'memory',
        rows,
        aims: [
          { what: 'memory of a node', got: last, wanted: 170, bound: 'at most', unit: 'MB' },
          {
            what: 'memory at the end / after the second round',
            got: last / second,
            wanted: 1.1,
            bound: 'at most',
          },
        ],
        notes: [],
      };
    } finally {
      await node.stop();
    }
  } finally {
    await sender.close();
    folder.remove();
  }
}
