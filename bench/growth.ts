import { join } from 'node:path';
import type { AcceptCommand } from '../src/ledger/index.js';
import { audit, storage } from './built.js';
import { drive } from './measure.js';
import { filledSqlite, workFolder } from './nodes.js';
import { acceptCommandOf, prepareOffers, TENANT } from './offers.js';
import { type Row, rateIn, type Section } from './report.js';

const PARTIES = { sender: 'http://127.0.0.1:4101', receiver: 'http://127.0.0.1:4102' };
const SMALL = 1_000;
/** Cases are added for this long; how many that were is printed. */
const FILL_MS = 50_000;
const MEASURED = 1_000;

/** Whether an acceptance costs more in a ledger that has grown, and how fast its audit is verified. */
export async function growth(): Promise<Section> {
  const folder = workFolder();
  try {
    const rows: Row[] = [];
    const notes: string[] = [];
    const label = (cases: number) => `ledger.accept among ${cases.toLocaleString('en')} cases`;
    const measure = async (name: string, fill: number | 'until time is up') => {
      const file = join(folder.path, `${name}.db`);
      const offers = await filledSqlite(file, async (ledger) => {
        const begun = performance.now();
        let filled = 0;
        while (fill === 'until time is up' ? performance.now() - begun < FILL_MS : filled < fill) {
          const count = fill === 'until time is up' ? 2_000 : fill;
          await prepareOffers(ledger, PARTIES, count, `F${filled}`);
          filled += count;
        }
        const made = await prepareOffers(ledger, PARTIES, MEASURED);
        return { made, cases: filled + MEASURED };
      });
      const commands = offers.made.map((offer) => acceptCommandOf(offer, PARTIES));
      const ledger = await storage.openSqliteLedger({ file });
      const work = (index: number) => ledger.accept(commands[index] as AcceptCommand);
      const rate = await drive(1, { maxCount: MEASURED, maxMs: 10_000 }, work);
      rows.push({ what: label(offers.cases), inFlight: 1, rate });
      if (fill === 'until time is up') notes.push(await verifySpeed(ledger));
      await ledger.close();
      return offers.cases;
    };
    const small = await measure('small', SMALL);
    const large = await measure('large', 'until time is up');
    notes.push(`growth was measured up to ${large.toLocaleString('en')} cases, of the 1,000,000 of the aim`);
    return {
      name: 'growth',
      rows,
      aims: [
        {
          what: `median acceptance among ${large.toLocaleString('en')} cases / among ${small.toLocaleString('en')}`,
          got: rateIn(rows, label(large), 1).p50Ms / rateIn(rows, label(small), 1).p50Ms,
          wanted: 1.2,
          bound: 'at most',
        },
      ],
      notes,
    };
  } finally {
    folder.remove();
  }
}

/** Entries a second through verification and replay, without the reading of them. */
async function verifySpeed(ledger: Awaited<ReturnType<typeof storage.openSqliteLedger>>): Promise<string> {
  const refs = (await ledger.listAuditedCases(TENANT)).slice(0, 5_000);
  const chains = [];
  for (const ref of refs) chains.push(await ledger.readAudit(ref));
  const begun = performance.now();
  let entries = 0;
  for (const chain of chains) {
    const verdict = audit.verifyChain(chain);
    if (!verdict.ok) throw new Error('the audit does not verify');
    audit.replay(chain);
    entries += chain.length;
  }
  const perSecond = Math.round((entries / (performance.now() - begun)) * 1000);
  return `audit verify and replay: aim >= 200,000 entries/s, got ${perSecond.toLocaleString('en')}, ${perSecond >= 200_000 ? 'met' : 'missed'}`;
}
