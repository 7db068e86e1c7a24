import { growth } from './growth.js';
import { httpOnSqlite } from './http.js';
import { memory } from './memory.js';
import { acceptOnPostgres } from './postgres-accept.js';
import { httpOnPostgres, threeNodes } from './postgres-http.js';
import { render, type Section } from './report.js';
import { slowDisk } from './slow-disk.js';
import { acceptOnSqlite } from './sqlite-accept.js';

/** In the order in which they run. Each ends by itself, in a bounded number of steps and of seconds. */
const BENCHMARKS: Readonly<Record<string, () => Promise<Section>>> = {
  'accept-sqlite': acceptOnSqlite,
  'http-sqlite': httpOnSqlite,
  'accept-postgres': acceptOnPostgres,
  'http-postgres': httpOnPostgres,
  'three-nodes': threeNodes,
  'slow-disk': slowDisk,
  growth,
  memory,
};

const words = process.argv.slice(2);
const json = words.includes('--json');
const names = words.filter((word) => word !== '--json');
const unknown = names.filter((name) => !Object.hasOwn(BENCHMARKS, name));
if (unknown.length > 0) {
  process.stderr.write(
    `bench: there is no ${unknown.join(', ')}; there are ${Object.keys(BENCHMARKS).join(', ')}\n`,
  );
  process.exit(2);
}
for (const [name, run] of Object.entries(BENCHMARKS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  const section = await run();
  process.stdout.write(json ? `${JSON.stringify(section)}\n` : render(section));
}
