import { once } from 'node:events';
import { HoldfastError } from '../core/index.js';
import type { RunState } from './expectation.js';
import { suggestions } from './suggestions.js';
import { type Outcome, play } from './run.js';
import { Timeline } from './timeline.js';
import { findVariant, VARIANT_NAMES } from './variants.js';
import { World } from './world.js';

export { VARIANT_NAMES } from './variants.js';

export interface TriageDemoOptions {
  /** One of {@link VARIANT_NAMES}; the plain scenario where absent. */
  readonly variant?: string;
  /** End when the scenario has been played, instead of staying up to be looked at. */
  readonly once: boolean;
  /** One JSON object as the last line instead of the timeline. */
  readonly json: boolean;
  readonly out: NodeJS.WritableStream;
  readonly color: boolean;
  /** Replaces some of what is written down for the variant, to see that the comparison can fail. */
  readonly expected?: Partial<RunState>;
}

/**
 * Plays scenario B1 with two nodes in their own processes, and compares what happened with what was written down beforehand.
 * Resolves to the exit code: 0 only where both agree.
 * @throws usage when there is no such variant
 */
export async function runTriageDemo(options: TriageDemoOptions): Promise<number> {
  const { variant: name, json, once: single, out } = options;
  const variant = findVariant(name);
  if (!variant) {
    throw new HoldfastError('usage', `There is no variant ${name}; there are ${VARIANT_NAMES.join(', ')}.`);
  }
  const write = (text: string) => void out.write(text);
  const timeline = new Timeline(json ? () => undefined : write, options.color);
  const stopped = single ? null : stopSignal();
  timeline.title(
    name === undefined ? 'Triage hands a case to billing' : `Triage hands a case to billing, ${name}`,
    variant.title,
  );
  const world = await World.create({ injected: false, confined: false, outsider: false, ...variant.world });
  try {
    const outcome = await play(world, variant, { ...variant.expected, ...options.expected }, timeline);
    const { audit, state } = outcome;
    timeline.verdict(
      outcome.ok,
      `${state.owner} owns the case at epoch ${state.epoch}; ${state.attempts.length} effect(s) attempted; ` +
        `audit of ${audit.entries} entries ${audit.verified ? 'verified' : 'BROKEN'}; ${outcome.leaks.length} leak(s)`,
      outcome.problems,
    );
    if (json) write(`${JSON.stringify(report(name, outcome, world))}\n`);
    if (stopped) {
      for (const { proxy } of world.agents()) proxy.stopRecording();
      timeline.plain(suggestions(world));
      await stopped;
    }
    return outcome.ok ? 0 : 1;
  } finally {
    await world.stop();
  }
}

function report(variant: string | undefined, outcome: Outcome, world: World) {
  const { state, audit, ok, problems, leaks } = outcome;
  return {
    scenario: 'triage',
    variant: variant ?? null,
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

/** Resolves on the first Ctrl-C or request to end; a second one ends the process as it would without us. */
async function stopSignal(): Promise<void> {
  const abort = new AbortController();
  await Promise.race(
    (['SIGINT', 'SIGTERM'] as const).map((name) => once(process, name, { signal: abort.signal }).catch(() => undefined)),
  );
  abort.abort();
}
