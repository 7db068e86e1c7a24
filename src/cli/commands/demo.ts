import type { Command } from 'commander';
import { HoldfastError } from '../../core/index.js';
import { listVariants, runTriageDemo } from '../../demo/index.js';
import { isPostgresUrl } from '../../node/index.js';
import { printTable } from '../print.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';

interface TriageOptions extends CommonOptions {
  variant?: string;
  once?: boolean;
  db?: string;
}

export function addDemo(program: Command, session: Session): void {
  const commands = group(
    program,
    'demo',
    'see it work, with two real agents on this machine',
    'demo triage --once',
  );
  leaf(
    commands,
    'triage',
    'a double charge goes from triage to billing',
    [
      'demo triage',
      'demo triage --once --json',
      'demo triage --variant v2 --once',
      'demo triage --db postgres://user@host/name',
    ],
    { dir: false },
  )
    .addHelpText('after', `\n${variants()}`)
    .option('--variant <name>', 'inject a fault; one of those listed below')
    .option('--db <url>', 'keep the ledger in this PostgreSQL database; what the demo wrote stays there')
    .option('--once', 'end when the timeline does, instead of staying up')
    .action((options: TriageOptions) =>
      session.finish(options, async () => {
        if (options.db !== undefined && !isPostgresUrl(options.db)) {
          throw new HoldfastError(
            'usage',
            '--db of the demo is the URL of a PostgreSQL database, such as postgres://user@host/name; without it the demo makes a file.',
          );
        }
        session.exit = await runTriageDemo({
          ...(options.variant === undefined ? {} : { variant: options.variant }),
          ...(options.db === undefined ? {} : { db: options.db }),
          once: options.once === true,
          json: options.json === true,
          out: session.io.out,
          color: session.io.color,
        });
        return null;
      }),
    );
}

function variants(): string {
  return printTable(
    ['VARIANT', 'WHAT GOES WRONG'],
    listVariants().map(({ name, title }) => [name, title]),
  );
}
