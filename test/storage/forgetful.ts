import { openSqliteLedger } from '../../src/storage/index.js';
import { asTriage } from './suite/fixtures.js';

/** A process that ends without closing its ledger: `forgetful.ts FILE`. */
const [file = ''] = process.argv.slice(2);
const ledger = await openSqliteLedger({ file });
for (let n = 0; n < 2; n += 1) {
  await Promise.all(Array.from({ length: 20 }, () => ledger.addNote({ ...asTriage, text: `from ${n}` })));
}
const notes = await ledger.listNotes(asTriage.ref);
process.stdout.write(`${notes.length} notes, not closed\n`);
