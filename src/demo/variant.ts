import type { RunState } from './expectation.js';
import type { Stage } from './stage.js';
import type { Mode } from './standing.js';
import type { WorldOptions } from './world.js';

/** One way in which the scenario can go, with what it must come to written down before it is played. */
export interface Variant {
  readonly title: string;
  readonly world?: Partial<Omit<WorldOptions, 'mode' | 'dbs'>>;
  readonly play: (stage: Stage) => Promise<void>;
  /** What it must come to, in each mode. */
  readonly expected: (mode: Mode) => RunState;
}
