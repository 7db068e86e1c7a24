import { type Fault, parsePlan } from './plan.js';
import type { FaultPoint } from './points.js';

export { FAULT_POINTS, type FaultPoint } from './points.js';

const VARIABLE = 'HOLDFAST_FAULTS';

/** Where HOLDFAST_FAULTS is only this, hits are counted and nothing fails until a test arms a fault. */
const COUNT_ONLY = 'count';

const asked = process.env[VARIABLE];

/** Whether this process was started to be made to fail. */
export const faultsEnabled = asked !== undefined;

const hits = new Map<FaultPoint, number>();
let plan: ReadonlyMap<FaultPoint, Fault> = parsePlan(asked === COUNT_ONLY ? '' : (asked ?? ''));

/** A place where a test may make this process fail; nothing at all unless HOLDFAST_FAULTS is set when the process starts. */
export function faultPoint(name: FaultPoint): void {
  if (faultsEnabled) hit(name);
}

function hit(name: FaultPoint): void {
  const count = (hits.get(name) ?? 0) + 1;
  hits.set(name, count);
  const fault = plan.get(name);
  if (fault !== undefined && (fault.hit === null || fault.hit === count)) fault.action();
}

/** How often each point has been hit since the start, or since faults were armed. */
export function faultHits(): Readonly<Partial<Record<FaultPoint, number>>> {
  return Object.fromEntries(hits);
}

/**
 * For tests: what fails from now on, instead of what HOLDFAST_FAULTS says; hits are counted anew.
 * @throws Error where the process was not started with HOLDFAST_FAULTS, or the text names no known fault
 */
export function armFaults(text: string): void {
  if (!faultsEnabled) throw new Error(`faults are armed only where ${VARIABLE} was set at the start`);
  plan = parsePlan(text);
  hits.clear();
}
