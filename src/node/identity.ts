import { systemClock } from '../core/index.js';
import type { NodeIdentity } from '../trust/index.js';
import { readConfig } from './config.js';
import { openIdentity } from './node-keys.js';

/** The URL and keys of the agent in `dir`, as peers configure them. @throws config_invalid */
export async function loadIdentity(dir: string): Promise<NodeIdentity> {
  return openIdentity(dir, readConfig(dir).url, systemClock);
}
