import type { TriageDemoOptions } from '../../src/demo/index.js';

/** Compiled, as it ships: the agents' processes start in half the time. `npm test` builds first. */
const { runTriageDemo } = (await import(
  new URL('../../dist/demo/index.js', import.meta.url).href
)) as typeof import('../../src/demo/index.js');

/** Plays the demo to its end; `json` is the line that it prints last. */
export async function run(options: Partial<TriageDemoOptions> & { variant?: string } = {}) {
  const chunks: string[] = [];
  const out = (text: string) => void chunks.push(text);
  const code = await runTriageDemo({ mode: 'shared', once: true, json: true, out, color: false, ...options });
  return { code, json: JSON.parse(chunks.join('').trimEnd().split('\n').at(-1) ?? '') };
}

/** What every run must come to, whatever else happened in it. */
export const GOOD = {
  problems: [],
  ok: true,
  leaks: 0,
  audit: { verified: true },
  observed: { overlaps: [] },
};

/** For a run in which processes die, and start again up to four times, on a machine that is busy. */
export const LIMIT_MS = 90_000;

export const REFUND = {
  operation: 'refund',
  amount: '49.00',
  currency: 'EUR',
  key: 'refund-pay_B',
  epoch: 4,
  state: 'done',
};
