import type { Command } from 'commander';
import { listConfigKeys, loadContracts, readConfig } from '../../node/index.js';
import { type CommonOptions, leaf, type Session } from '../run.js';

export function addConfig(program: Command, session: Session): void {
  const config = program.command('config').description('the configuration file, holdfast.yaml');
  leaf(config, 'explain [key]', 'explain every key, or those below one', [
    'config explain',
    'config explain limits',
  ]).action((key: string | undefined, options: CommonOptions) =>
    session.finish(options, async () => {
      const keys = listConfigKeys().filter(({ path }) => key === undefined || isBelow(path, key));
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
  leaf(config, 'check', 'check the file and the contracts that it names', [
    'config check --dir triage',
  ]).action((options: CommonOptions) =>
    session.finish(options, async () => {
      const dir = session.dirOf(options);
      const checked = readConfig(dir);
      const contracts = await loadContracts(dir, checked.contracts);
      return {
        json: { ok: true, agent: checked.agent, contracts: [...contracts.keys()] },
        text: `The configuration of ${checked.agent} is valid.`,
      };
    }),
  );
}

function isBelow(path: string, key: string): boolean {
  return path === key || path.startsWith(`${key}.`) || path.startsWith(`${key}[`);
}
