import { fileURLToPath } from 'node:url';
import type * as Audit from '../src/audit/index.js';
import type { Contract } from '../src/contract/index.js';
import type * as Core from '../src/core/index.js';
import type * as EnvelopeRoom from '../src/envelope/index.js';
import type * as Holdfast from '../src/index.js';
import type * as Storage from '../src/storage/index.js';
import type * as Trust from '../src/trust/index.js';

/**
 * What is measured is `dist/`, the plain compiled code that ships: a loader that compiles TypeScript on the fly adds its own helpers
 * to every function. The types come from `src/`, so that checking needs no build.
 */
async function room<T>(name: string): Promise<T> {
  return import(new URL(`../dist/${name}index.js`, import.meta.url).href);
}

export const audit = await room<typeof Audit>('audit/');
export const core = await room<typeof Core>('core/');
export const envelope = await room<typeof EnvelopeRoom>('envelope/');
/** The public door. */
export const holdfast = await room<typeof Holdfast>('');
export const storage = await room<typeof Storage>('storage/');
export const trust = await room<typeof Trust>('trust/');

/** The module of the contract under which the cases of these benchmarks are handed over. */
export const CONTRACT_MODULE = fileURLToPath(new URL('servers/contract.mjs', import.meta.url));
export const benchContract = ((await import(CONTRACT_MODULE)) as { default: Contract }).default;
