import type { Command } from 'commander';
import { loadIdentity, readConfig } from '../../node/index.js';
import { printFields } from '../print.js';
import { type CommonOptions, leaf, type Session } from '../run.js';

export function addIdentity(program: Command, session: Session): void {
  leaf(
    program,
    'identity',
    "print the agent's URL and the thumbprints of its keys",
    ['identity --dir triage'],
    { db: false },
  ).action((options: CommonOptions) =>
    session.finish(options, async () => {
      const dir = session.dirOf(options);
      const { agent } = readConfig(dir);
      const { url, thumbprint, nextThumbprint, retired } = await loadIdentity(dir);
      return {
        json: {
          agent,
          url,
          thumbprint,
          next: nextThumbprint,
          retired: retired.map((one) => one.thumbprint),
        },
        text: printFields([
          ['agent', agent],
          ['url', url],
          ['thumbprint', thumbprint],
          ['next', nextThumbprint],
          ['retired', retired.map((one) => one.thumbprint).join(', ')],
        ]),
      };
    }),
  );
}
