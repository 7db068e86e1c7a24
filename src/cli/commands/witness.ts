import type { Command } from 'commander';
import { acceptLedger, readConfig, readWitness } from '../../node/index.js';
import { counted, printFields } from '../print.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';

export function addWitness(program: Command, session: Session): void {
  const commands = group(
    program,
    'witness',
    'what the agent has seen committed, kept outside the ledger',
    'witness show --dir triage',
  );
  leaf(commands, 'show', 'say which ledger was seen, and how many cases', ['witness show --dir triage'], {
    db: false,
  }).action((options: CommonOptions) =>
    session.finish(options, async () => {
      const dir = session.dirOf(options);
      readConfig(dir);
      const { dir: folder, ledger, cases } = await readWitness(dir);
      return {
        json: { folder, ledger, cases },
        text: printFields([
          ['folder', folder],
          ['ledger', ledger?.incarnation ?? 'none yet'],
          ['server', ledger?.system],
          ['timeline', ledger?.timeline],
          ['cases', cases],
        ]),
      };
    }),
  );
  leaf(
    commands,
    'accept <incarnation>',
    'take a restored ledger; each case that it lacks or holds at an earlier state is quarantined',
    ['witness accept inc_4mZ… --dir triage'],
  ).action((incarnation: string, options: CommonOptions) =>
    session.finish(options, async () => {
      const { cases, quarantined } = await acceptLedger(
        session.dirOf(options),
        incarnation,
        session.ledgerOf(options),
      );
      const outcome =
        quarantined === 0
          ? 'none is behind what was seen'
          : `${counted(quarantined, 'case')} quarantined; \`holdfast attention\` lists them`;
      return {
        json: { incarnation, cases, quarantined },
        text: `The ledger is ${incarnation} from now on. Of ${counted(cases, 'case')} seen, ${outcome}.`,
      };
    }),
  );
}
