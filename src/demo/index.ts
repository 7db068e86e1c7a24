import { HoldfastError } from '../core/index.js';
import type { Outcome, RunState } from './expectation.js';
import { play } from './run.js';
import type { Mode } from './standing.js';
import { suggestions } from './suggestions.js';
import { Timeline } from './timeline.js';
import { findVariant, listVariants } from './variants.js';
import { World, type WorldOptions } from './world.js';

export { listVariants };

export interface TriageDemoOptions {
  /** `shared`: both agents use one ledger; `separate`: one each. */
  readonly mode: Mode;
  /** The name of a variant, in whatever case; the plain scenario where absent. */
  readonly variant?: string;
  /** End when the scenario has been played, instead of staying up to be looked at. */
  readonly once: boolean;
  /** URL of a PostgreSQL database that holds the ledger, instead of a file of the demo's own. */
  readonly db?: string;
  /** The same for billing's own ledger in the mode `separate`, where `db` is triage's; both or neither. */
  readonly dbBilling?: string;
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
 * @throws usage when there is no such variant, or the databases do not go with the mode
 */
export async function runTriageDemo(options: TriageDemoOptions): Promise<0 | 1 | 130> {
  const { json, out, mode } = options;
  const variant = findVariant(options.variant);
  if (!variant) {
    const names = listVariants().map(({ name }) => name);
    throw new HoldfastError(
      'usage',
      `There is no variant ${options.variant}; there are ${names.join(', ')}. \`holdfast demo triage --help\` says what each is.`,
    );
  }
  const { name } = variant;
  const dbs = databasesOf(options);
  const timeline = new Timeline(json ? () => undefined : out, options.color);
  const signal = listenForStop();
  let world: World | null = null;
  try {
    timeline.title(`Triage hands a case to billing${name === null ? '' : `, ${name}`}`, variant.title);
    world = await World.create({
      mode,
      injected: false,
      confined: false,
      outsider: false,
      second: false,
      dbs,
      faults: {},
      ...variant.world,
    });
    if (signal.received()) return 130;
    const expected = { ...variant.expected(mode), ...options.expected };
    const outcome = await Promise.race([play(world, variant, expected, timeline), signal.stopped]);
    if (outcome === 'stopped') return 130;
    timeline.outcome(outcome);
    if (json) out(`${JSON.stringify(report(mode, name, outcome))}\n`);
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

/** @throws usage */
function databasesOf({ mode, db, dbBilling }: TriageDemoOptions): WorldOptions['dbs'] {
  if (mode === 'shared' && dbBilling !== undefined) {
    throw new HoldfastError(
      'usage',
      'In the mode shared both agents use the one ledger of --db; --db-billing goes with --mode separate.',
    );
  }
  if (mode === 'separate' && (db === undefined) !== (dbBilling === undefined)) {
    throw new HoldfastError(
      'usage',
      "In the mode separate each agent has a ledger of its own: give triage's database as --db and billing's as --db-billing, or neither.",
    );
  }
  if (db !== undefined && dbBilling !== undefined && placeOf(db) === placeOf(dbBilling)) {
    throw new HoldfastError(
      'usage',
      '--db and --db-billing name the same database: in the mode separate each agent has one of its own.',
    );
  }
  return {
    ...(db === undefined ? {} : { triage: db }),
    ...(dbBilling === undefined ? {} : { billing: dbBilling }),
  };
}

/** Which database of which server a URL names, whoever logs in. */
function placeOf(url: string): string {
  const { host, pathname, searchParams } = new URL(url);
  return [host, pathname, searchParams.get('host') ?? ''].join(' ');
}

function report(mode: Mode, variant: string | null, outcome: Outcome) {
  const { state, audit, observed, ok, problems, leaks, owner } = outcome;
  return {
    scenario: 'triage',
    mode,
    variant,
    ok,
    owner,
    epoch: state.epoch,
    workItems: state.work.length,
    effects: state.effects,
    attempts: state.attempts,
    refused: state.refused,
    audit,
    observed,
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
