import { HoldfastError } from '../core/index.js';
import type { Outcome, RunState } from './expectation.js';
import { play } from './run.js';
import { suggestions } from './suggestions.js';
import { Timeline } from './timeline.js';
import { findVariant, listVariants } from './variants.js';
import { World } from './world.js';

export { listVariants };

export interface TriageDemoOptions {
  /** The name of a variant, in whatever case; the plain scenario where absent. */
  readonly variant?: string;
  /** End when the scenario has been played, instead of staying up to be looked at. */
  readonly once: boolean;
  /** URL of a PostgreSQL database that holds the ledger, instead of a file of the demo's own. */
  readonly db?: string;
  /** One JSON object as the last line instead of the timeline. */
  readonly json: boolean;
  /** Takes text as it comes, line ends included. */
  readonly out: (text: string) => void;
  readonly color: boolean;
  /** Replaces some of what is written down for the variant, to see that the comparison can fail. */
  readonly expected?: Partial<RunState>;
}

/**
 * Plays scenario B1 with two nodes in their own processes, and compares what happened with what was written down beforehand.
 * Resolves to the exit code: 0 only where both agree, 130 where it was interrupted before that was known.
 * @throws usage when there is no such variant
 */
export async function runTriageDemo(options: TriageDemoOptions): Promise<0 | 1 | 130> {
  const { json, out } = options;
  const variant = findVariant(options.variant);
  if (!variant) {
    const names = listVariants().map(({ name }) => name);
    throw new HoldfastError(
      'usage',
      `There is no variant ${options.variant}; there are ${names.join(', ')}. \`holdfast demo triage --help\` says what each is.`,
    );
  }
  const { name } = variant;
  const timeline = new Timeline(json ? () => undefined : out, options.color);
  const signal = listenForStop();
  let world: World | null = null;
  try {
    timeline.title(`Triage hands a case to billing${name === null ? '' : `, ${name}`}`, variant.title);
    world = await World.create({
      injected: false,
      confined: false,
      outsider: false,
      db: options.db ?? null,
      faults: {},
      ...variant.world,
    });
    if (signal.received()) return 130;
    const expected = { ...variant.expected, ...options.expected };
    const outcome = await Promise.race([play(world, variant, expected, timeline), signal.stopped]);
    if (outcome === 'stopped') return 130;
    timeline.outcome(outcome);
    if (json) out(`${JSON.stringify(report(name, outcome, world))}\n`);
    if (!options.once) {
      for (const { proxy } of world.agents()) proxy.stopRecording();
      timeline.plain(suggestions(world));
      await signal.stopped;
    }
    return outcome.ok ? 0 : 1;
  } finally {
    await world?.stop();
    signal.release();
  }
}

function report(variant: string | null, outcome: Outcome, world: World) {
  const { state, audit, ok, problems, leaks } = outcome;
  return {
    scenario: 'triage',
    variant,
    ok,
    owner: world.urlOf(state.owner),
    epoch: state.epoch,
    workItems: state.work.length,
    effects: state.effects,
    attempts: state.attempts,
    refused: state.refused,
    audit,
    leaks: leaks.length,
    state,
    problems,
  };
}

/** Until released, Ctrl-C, a closed terminal and a request to end let the demo clean up instead of ending the process. */
function listenForStop(): {
  readonly stopped: Promise<'stopped'>;
  received(): boolean;
  release(): void;
} {
  let received = false;
  let stop: () => void = () => undefined;
  const stopped = new Promise<'stopped'>((resolve) => {
    stop = () => {
      received = true;
      resolve('stopped');
    };
  });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of signals) process.on(name, stop);
  return {
    stopped,
    received: () => received,
    release: () => {
      for (const name of signals) process.off(name, stop);
    },
  };
}
