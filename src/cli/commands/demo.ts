import type { Command } from 'commander';
import { type CommonOptions, leaf, type Session } from '../run.js';

interface TriageOptions extends CommonOptions {
  variant?: string;
  once?: boolean;
}

export function addDemo(program: Command, session: Session): void {
  const group = program.command('demo').description('see it work, with two real agents on this machine');
  leaf(group, 'triage', 'a double charge goes from triage to billing', [
    'demo triage',
    'demo triage --once --json',
    'demo triage --variant V2 --once',
  ])
    .option('--variant <name>', 'inject a fault: V1 V1b V2 V5 V6 V7 V8 V9 V12 V14 V15')
    .option('--once', 'end when the timeline does, instead of staying up')
    .action((options: TriageOptions) =>
      session.finish(options, async () => {
        // Loaded only here: no other command needs it.
        const { runTriageDemo } = await import('../../demo/index.js');
        session.exit = await runTriageDemo({
          ...(options.variant === undefined ? {} : { variant: options.variant }),
          once: options.once === true,
          json: options.json === true,
          out: session.io.out,
          color: session.io.color,
        });
        return null;
      }),
    );
}
