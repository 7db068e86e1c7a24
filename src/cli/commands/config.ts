import type { Command } from 'commander';
import { HoldfastError } from '../../core/index.js';
import {
  ledgerPlace,
  listConfigKeys,
  nearestOf,
  readConfig,
  redactUrl,
  verifyConfig,
} from '../../node/index.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';

export function addConfig(program: Command, session: Session): void {
  const config = group(
    program,
    'config',
    'the configuration file, holdfast.yaml',
    'config check --dir triage',
  );
  leaf(
    config,
    'explain [key]',
    'explain every key, or those below one',
    ['config explain', 'config explain limits'],
    { dir: false },
  ).action((key: string | undefined, options: CommonOptions) =>
    session.finish(options, async () => {
      const all = listConfigKeys();
      const keys = all.filter(({ path }) => key === undefined || isBelow(path, key));
      if (key !== undefined && keys.length === 0)
        throw unknownKey(
          all.map(({ path }) => path),
          key,
        );
      return {
        json: { keys },
        text: keys
          .map(({ path, type, default: fallback, meaning }) => {
            const given = fallback === null ? 'must be given' : `default ${fallback}`;
            return `${path}  (${type}; ${given})\n    ${meaning}`;
          })
          .join('\n'),
      };
    }),
  );
  leaf(
    config,
    'check',
    'check the file, and the contracts and handlers that it names',
    ['config check --dir triage'],
    { db: false },
  ).action((options: CommonOptions) =>
    session.finish(options, async () => {
      const dir = session.dirOf(options);
      const checked = readConfig(dir);
      const { contracts, warnings } = await verifyConfig(dir, checked);
      for (const warning of warnings) session.warn(warning);
      const ledger = redactUrl(ledgerPlace(checked, dir).target);
      return {
        json: { ok: true, agent: checked.agent, ledger, contracts, warnings },
        text: `The configuration of ${checked.agent} is valid. Its ledger is ${ledger}.`,
      };
    }),
  );
}

function isBelow(path: string, key: string): boolean {
  return path === key || path.startsWith(`${key}.`) || path.startsWith(`${key}[`);
}

function unknownKey(paths: readonly string[], key: string): HoldfastError {
  const sections = paths.flatMap((path) =>
    path.split('.').map((_, at, steps) => steps.slice(0, at + 1).join('.')),
  );
  const nearest = nearestOf([...new Set(sections)], key);
  const hint = nearest === null ? '' : `; did you mean ${nearest}?`;
  return new HoldfastError(
    'usage',
    `There is no key ${key} in the configuration${hint || '.'} \`holdfast config explain\` lists every key.`,
  );
}
