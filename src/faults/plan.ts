import { FAULT_POINTS, type FaultPoint } from './points.js';

/** What a test lets happen at a point: at one hit of it, or at every one. */
export interface Fault {
  readonly action: () => void;
  /** Which hit, the first being 1; every one where null. */
  readonly hit: number | null;
}

const ENTRY = /^([\w.]+)=(kill9|stop|throw|(?:delay|busy)\(\d{1,6}\))(?:@([1-9]\d{0,6}))?$/;

/**
 * Reads `R3.after_commit=kill9@2;S4.before_send=delay(50)`: what happens at which point, at each hit or only at one.
 * @throws Error where it names no point or no action
 */
export function parsePlan(text: string): Map<FaultPoint, Fault> {
  const plan = new Map<FaultPoint, Fault>();
  for (const entry of text.split(';').filter((part) => part !== '')) {
    const [, name = '', action = '', hit] = ENTRY.exec(entry) ?? [];
    if (!isFaultPoint(name)) throw new Error(`HOLDFAST_FAULTS: "${entry}" is no fault at a known point`);
    plan.set(name, { action: actionOf(name, action), hit: hit === undefined ? null : Number(hit) });
  }
  return plan;
}

function isFaultPoint(name: string): name is FaultPoint {
  return Object.hasOwn(FAULT_POINTS, name);
}

function actionOf(name: FaultPoint, text: string): () => void {
  const ms = Number(/\((\d+)\)$/.exec(text)?.[1]);
  switch (text.replace(/\(.*$/, '')) {
    case 'kill9':
      return () => process.kill(process.pid, 'SIGKILL');
    case 'stop':
      return () => process.kill(process.pid, 'SIGSTOP');
    case 'delay':
      return () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    case 'busy':
      return () => spin(ms);
    default:
      return () => {
        throw new Error(`a fault was injected at ${name}`);
      };
  }
}

/** Keeps the processor, as a computation that never yields does. */
function spin(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
