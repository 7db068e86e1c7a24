import { httpOnSqlite } from './http.js';
import { render, type Section } from './report.js';

const BENCHMARKS: Readonly<Record<string, () => Promise<Section>>> = {
  'http-sqlite': httpOnSqlite,
};

const names = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const json = process.argv.includes('--json');
for (const name of names.length > 0 ? names : Object.keys(BENCHMARKS)) {
  const section = await BENCHMARKS[name]?.();
  if (section) process.stdout.write(json ? `${JSON.stringify(section)}\n` : render(section));
}
