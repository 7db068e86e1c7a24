import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** GitHub's anchor of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

function brokenLinks(page: string): string[] {
  const text = readFileSync(page, 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '');
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return links.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? page : join(dirname(page), path);
    if (!existsSync(file)) return true;
    const headings = readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm);
    return anchor !== undefined && ![...headings].some(([, heading = '']) => anchorOf(heading) === anchor);
  });
}

describe('the documents', () => {
  it.each(pages)('%s has no broken link', (page) => {
    expect(brokenLinks(page)).toEqual([]);
  });

  it('show the examples as they run', () => {
    const shown = pages
      .filter((page) => page !== 'README.md') // it shows a part, which has a test of its own
      .flatMap((page) => [
        ...readFileSync(page, 'utf8').matchAll(/^<!-- (examples\/\S+) -->\n```\w+\n([\s\S]*?)^```$/gm),
      ]);
    expect(shown.map(([, file]) => file).sort()).toEqual([
      'examples/fences/postgres.mjs',
      'examples/fences/sqlite.mjs',
      'examples/library/handover.mjs',
      'examples/own-contract/replacement.mjs',
      'examples/own-contract/replacement.yaml',
      'examples/thin/reader.mjs',
      'examples/thin/review.mjs',
    ]);
    for (const [, file = '', text] of shown) expect(text, file).toBe(readFileSync(file, 'utf8'));
  });
});
