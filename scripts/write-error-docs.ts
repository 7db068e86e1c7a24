/** Writes the error table into docs/reference/errors.md, and the rejection codes into docs/wire.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { ERROR_TABLE, type ErrorClass } from '../src/core/index.js';

const CLASSES: Record<ErrorClass, string> = {
  rejection: 'Rejections: verdicts of a receiver on an offer',
  refusal: 'Refusals: writes that the ledger does not take',
  error: 'Errors: nothing was decided',
  local: 'Found before anything left the process',
};
const START = '<!-- rejection codes: written by npm run docs:write -->';
const END = '<!-- end of rejection codes -->';

export function errorReference(): string {
  const sections = (Object.keys(CLASSES) as ErrorClass[]).map((cls) => {
    const rows = Object.entries(ERROR_TABLE)
      .filter(([, info]) => info.cls === cls)
      .map(([code, info]) => `| \`${code}\` | ${info.meaning} | ${info.retry} | ${info.actor} |`);
    return [
      `## ${CLASSES[cls]}`,
      '',
      '| code | meaning | retry | who acts |',
      '|---|---|---|---|',
      ...rows,
    ].join('\n');
  });
  return `# Error codes

Codes are stable. \`retry\`: \`same\`, the identical request can succeed later; \`changed\`, only a corrected one can; \`never\`.
The exit codes of the command are in [exit-codes.md](exit-codes.md); how errors look on the wire is in [wire.md](../wire.md).

${sections.join('\n\n')}
`;
}

export function withRejectionCodes(wire: string): string {
  const rows = Object.entries(ERROR_TABLE)
    .filter(([, info]) => info.cls === 'rejection')
    .map(([code, info]) => `| \`${code}\` | ${info.meaning} | ${info.retry} |`);
  const table = ['| code | meaning | retry |', '|---|---|---|', ...rows].join('\n');
  const [before, rest] = wire.split(START);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error('docs/wire.md has lost its markers');
  return `${before}${START}\n${table}\n${END}${after}`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  writeFileSync('docs/reference/errors.md', errorReference());
  writeFileSync('docs/wire.md', withRejectionCodes(readFileSync('docs/wire.md', 'utf8')));
}
