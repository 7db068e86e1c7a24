import { systemClock } from '../core/index.js';
import { createNodeIdentity } from '../trust/index.js';
import { readConfig } from './config.js';
import { loadNodeKey } from './secrets.js';

/** The URL and key thumbprint that peers configure for the agent in `dir`. @throws config_invalid */
export async function loadIdentity(dir: string): Promise<{ url: string; thumbprint: string }> {
  const { url } = readConfig(dir);
  const identity = await createNodeIdentity({ url, privateJwk: await loadNodeKey(dir), clock: systemClock });
  return { url: identity.url, thumbprint: identity.thumbprint };
}
