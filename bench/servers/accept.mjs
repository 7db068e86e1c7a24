/** `accept.mjs FILE COMMANDS IN-FLIGHT`: accepts what stands in the file of commands and prints the rate, in a process that can be traced. */
import { readFileSync } from 'node:fs';
import { openSqliteLedger } from '../../dist/storage/index.js';

const [file, commandsFile, inFlight] = process.argv.slice(2);
const commands = JSON.parse(readFileSync(commandsFile, 'utf8'));
const ledger = await openSqliteLedger({ file });
const took = [];
let next = 0;
const begun = performance.now();
await Promise.all(
  Array.from({ length: Number(inFlight) }, async () => {
    while (next < commands.length && performance.now() - begun < 4_000) {
      const from = performance.now();
      await ledger.accept(commands[next++]);
      took.push(performance.now() - from);
    }
  }),
);
const ms = performance.now() - begun;
await ledger.close();
took.sort((a, b) => a - b);
const at = (share) => took[Math.floor(took.length * share)];
const rate = { perSecond: (took.length / ms) * 1000, p50Ms: at(0.5), p99Ms: at(0.99), count: took.length };
process.stdout.write(`${JSON.stringify(rate)}\n`);
