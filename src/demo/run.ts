import { compareStates, type Outcome, type RunState } from './expectation.js';
import { observe } from './observe.js';
import { Stage } from './stage.js';
import type { Timeline } from './timeline.js';
import type { Variant } from './variant.js';
import type { World } from './world.js';

/** Plays a variant and holds what it left behind against what was written down for it. */
export async function play(
  world: World,
  variant: Variant,
  expected: RunState,
  timeline: Timeline,
): Promise<Outcome> {
  timeline.heading(world.ledgers.names);
  const stage = new Stage(world, timeline);
  await variant.play(stage);
  const observation = await observe(stage);
  const problems = [
    ...compareStates(expected, observation.state),
    ...(observation.audit.verified
      ? []
      : ['audit: the chain does not verify, or tells something else than the ledger']),
    ...observation.observed.overlaps.map((overlap) => `two can cause effects: ${overlap}`),
    ...observation.leaks.map(({ what, where }) => `leak: ${what} in ${where}`),
  ];
  return { ...observation, ok: problems.length === 0, problems };
}
