import { openSqliteLedger } from '../../src/storage/index.js';
import { asTriage } from './suite/fixtures.js';

/** A process of its own that writes to the case: `writer.ts FILE COUNT`. */
const [file = '', count = '0'] = process.argv.slice(2);
const ledger = await openSqliteLedger({ file });
for (let n = 0; n < Number(count); n += 1) await ledger.addNote({ ...asTriage, text: `from ${process.pid}` });
await ledger.close();
