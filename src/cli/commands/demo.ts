import { type Command, Option } from 'commander';
import { HoldfastError } from '../../core/index.js';
import { listVariants, runTriageDemo } from '../../demo/index.js';
import { isPostgresUrl } from '../../node/index.js';
import { printTable } from '../print.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';

interface TriageOptions extends CommonOptions {
  variant?: string;
  once?: boolean;
  db?: string;
  dbBilling?: string;
  mode: 'shared' | 'separate';
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
      'demo triage --mode separate --once',
      'demo triage --db postgres://user@host/name',
      'demo triage --mode separate --db postgres://user@host/triage --db-billing postgres://user@host/billing',
    ],
    { dir: false },
  )
    .addHelpText('after', `\n${variants()}`)
    .option('--variant <name>', 'inject a fault; one of those listed below')
    .addOption(
      new Option('--mode <mode>', 'whether both agents use one ledger, or each has its own')
        .choices(['shared', 'separate'])
        .default('shared'),
    )
    .option(
      '--db <url>',
      "keep the ledger, with --mode separate triage's, in this PostgreSQL database; what the demo wrote stays there",
    )
    .option('--db-billing <url>', "the same for billing's ledger; only with --mode separate")
    .option('--once', 'end when the timeline does, instead of staying up')
    .action((options: TriageOptions) =>
      session.finish(options, async () => {
        checkDatabase('--db', options.db);
        checkDatabase('--db-billing', options.dbBilling);
        session.exit = await runTriageDemo({
          ...(options.variant === undefined ? {} : { variant: options.variant }),
          ...(options.db === undefined ? {} : { db: options.db }),
          ...(options.dbBilling === undefined ? {} : { dbBilling: options.dbBilling }),
          mode: options.mode,
          once: options.once === true,
          json: options.json === true,
          out: session.io.out,
          color: session.io.color,
        });
        return null;
      }),
    );
}

/** @throws usage */
function checkDatabase(option: string, url: string | undefined): void {
  if (url === undefined || isPostgresUrl(url)) return;
  throw new HoldfastError(
    'usage',
    `${option} of the demo is the URL of a PostgreSQL database, such as postgres://user@host/name; without it the demo makes a file.`,
  );
}

function variants(): string {
  return printTable(
    ['VARIANT', 'WHAT GOES WRONG'],
    listVariants().map(({ name, title }) => [name, title]),
  );
}
