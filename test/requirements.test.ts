import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { REQUIREMENTS } from './requirements.js';

const CITATION = /\[(R-\d{3})\]/g;

function isSkipped(node: ts.Node): boolean {
  return ts.isCallExpression(node) && /\.(skip|todo)\b/.test(node.expression.getText());
}

/** Ids in the strings of a test file: comments and skipped tests show nothing. */
function citedIn(source: string): Set<string> {
  const cited = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (isSkipped(node)) return;
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      for (const [, id] of node.text.matchAll(CITATION)) if (id !== undefined) cited.add(id);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('test.ts', source, ts.ScriptTarget.ES2023, true));
  return cited;
}

/** Id -> the files that cite it. */
function readCitations(): Map<string, string[]> {
  const citations = new Map<string, string[]>();
  for (const entry of readdirSync(import.meta.dirname, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.ts') || entry.name.startsWith('requirements.')) continue;
    const file = join(entry.parentPath, entry.name);
    for (const id of citedIn(readFileSync(file, 'utf8'))) {
      citations.set(id, [...(citations.get(id) ?? []), relative(import.meta.dirname, file)]);
    }
  }
  return citations;
}

describe('required behaviours', () => {
  const citations = readCitations();

  it('that are claimed are each cited by a test', () => {
    const missing = Object.entries(REQUIREMENTS)
      .filter(([id]) => !citations.has(id))
      .map(([id, { where, what }]) => `${id} (${where.join(', ')}): ${what}`);
    expect(missing, `claimed, but cited by no test:\n${missing.join('\n')}\n`).toHaveLength(0);
  });

  it('that are cited are each claimed', () => {
    const unknown = [...citations]
      .filter(([id]) => !(id in REQUIREMENTS))
      .map(([id, files]) => `${id}: cited in ${files.join(', ')}`);
    expect(unknown, `cited, but not claimed in test/requirements.ts:\n${unknown.join('\n')}\n`).toHaveLength(
      0,
    );
  });

  it('are found in names, not in comments or skipped tests', () => {
    const source = [
      "// it('[R-901] in a comment')",
      "it.skip('[R-902] skipped', () => {});",
      "describe.todo('[R-903] later');",
      "it('[R-904][R-905] shown', () => {});",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the source of a test, as text
      'it(`[R-906] ${name} and [R-907] more`, () => {});',
    ].join('\n');
    expect([...citedIn(source)].sort()).toEqual(['R-904', 'R-905', 'R-906', 'R-907']);
  });
});
