/** Writes docs/reference/configuration.md and docs/reference/exit-codes.md from the tables that the program itself uses. */
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { EXIT_MEANINGS, exitCodeOf } from '../src/cli/index.js';
import { ERROR_TABLE, type ErrorCode } from '../src/core/index.js';
import { listConfigKeys } from '../src/node/index.js';

const cell = (text: string) => text.replaceAll('|', '\\|');

export function configurationReference(): string {
  const rows = listConfigKeys().map(({ path, type, default: fallback, meaning }) => {
    const given = fallback === null ? 'must be given' : fallback === 'none' ? 'none' : `\`${fallback}\``;
    return `| \`${path}\` | ${cell(type)} | ${given} | ${cell(meaning)} |`;
  });
  return `# Configuration

An agent's folder holds \`holdfast.yaml\`. \`holdfast init\` writes one; \`holdfast config check\` checks it; \`holdfast config explain\` prints
this table. A key that is not in it is refused, with its line and the nearest known key.

Durations are written with their unit: \`ms\`, \`s\`, \`m\`, \`h\` or \`d\`. So are sizes: \`B\`, \`KiB\`, \`MiB\` or \`GiB\`. Amounts carry their
currency: \`100.00 EUR\`. Paths are relative to the folder of the file.

| key | type | default | meaning |
|---|---|---|---|
${rows.join('\n')}
`;
}

export function exitCodeReference(): string {
  const codes = Object.keys(ERROR_TABLE) as ErrorCode[];
  const rows = Object.entries(EXIT_MEANINGS).map(([exit, meaning]) => {
    const under = codes.filter((code) => exitCodeOf(code) === Number(exit)).map((code) => `\`${code}\``);
    return `| ${exit} | ${meaning} | ${under.join(', ')} |`;
  });
  return `# Exit codes

The exit status of \`holdfast\` says what sort of thing happened; the error code, in square brackets at the end of the line on stderr and in
\`error.code\` with \`--json\`, says which. \`holdfast errors\` prints both tables. What each error code means is in [errors.md](errors.md).

A receiver that rejects a handoff has done what it should: that is a result of \`handoff send\`, status 6 whatever the code. The same code
with status 2 was found in this process, before anything was sent.

| exit | meaning | error codes |
|---|---|---|
${rows.join('\n')}
`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  writeFileSync('docs/reference/configuration.md', configurationReference());
  writeFileSync('docs/reference/exit-codes.md', exitCodeReference());
}
