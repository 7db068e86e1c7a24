import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { run } from '../cli/support.js';

it('shows in the README the lines of the example that runs, twenty at most', () => {
  const example = readFileSync('examples/handover.ts', 'utf8').match(/\/\/ begin\n([\s\S]*?)\/\/ end\n/)?.[1];
  const shown = readFileSync('README.md', 'utf8').match(
    /<!-- examples\/handover.ts -->\n```ts\n([\s\S]*?)```/,
  )?.[1];
  expect(shown).toBe(example?.replace('../src/index.js', 'holdfast'));
  expect(shown?.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(20);
});

it('names in the README every variant of the demo', async () => {
  const rows = [...readFileSync('README.md', 'utf8').matchAll(/^\| (`V.*?) \|/gm)];
  const named = rows.flatMap(([, names = '']) => [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  const { err } = await run('demo', 'triage', '--variant', 'none');
  expect(err).toContain(`there are ${named.join(', ')}.`);
});

it('has no page on which two versions still stand side by side', () => {
  const pages = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.md'),
  );
  expect(pages.length).toBeGreaterThan(10);
  for (const page of ['README.md', 'CONTRIBUTING.md', ...pages.map((name) => `docs/${name}`)]) {
    expect(readFileSync(page, 'utf8'), page).not.toMatch(/^(?:<{7}|={7}|>{7})(?: |$)/m);
  }
});
