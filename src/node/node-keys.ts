import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { JWK } from 'jose';
import { type Clock, HoldfastError, toUtc } from '../core/index.js';
import { createNodeIdentity, generateNodeKey, type NodeIdentity, type RetiredKey } from '../trust/index.js';
import { createSecret, readSecret, replaceFile, syncFolder } from './secrets.js';

/** The node's private key, a JWK. Whoever has it is this agent. */
export const NODE_KEY_FILE = 'node.key.json';
/** The private key that the node is about to change to. */
export const NEXT_KEY_FILE = 'node.key.next.json';
/** Public parts of the keys before, a file each. */
export const RETIRED_KEYS_DIR = 'retired-keys';

/**
 * The node's key; made on first use.
 * @throws config_invalid when others can read the file or it is no key
 */
export async function loadNodeKey(dir: string): Promise<JWK> {
  return readJwk(join(dir, NODE_KEY_FILE)) ?? createJwk(join(dir, NODE_KEY_FILE));
}

/** The identity from all keys in the agent's folder. @throws config_invalid */
export async function openIdentity(dir: string, url: string, clock: Clock): Promise<NodeIdentity> {
  const privateJwk = await loadNodeKey(dir);
  const nextJwk = readJwk(join(dir, NEXT_KEY_FILE));
  // A rotation that did not come to its end has put the key that is still in use among the retired ones already.
  const retired = readRetired(dir).filter(({ jwk }) => jwk.x !== privateJwk.x);
  return createNodeIdentity({ url, privateJwk, nextJwk, retired, clock });
}

/** Makes the key that the node will change to, or finds the one made before. It signs nothing yet. @throws config_invalid */
export async function prepareKey(dir: string): Promise<void> {
  await loadNodeKey(dir);
  const file = join(dir, NEXT_KEY_FILE);
  if (readJwk(file) === null) await createJwk(file);
}

/**
 * Changes to the prepared key, or to a new one where none is prepared; the public part of the old one stays among the retired keys. A
 * crash in between leaves the old key in use, and the same call again comes to the end.
 * @throws config_invalid
 */
export async function rotateKey(dir: string, clock: Clock): Promise<void> {
  await prepareKey(dir);
  const { kty, crv, x } = await loadNodeKey(dir);
  const { thumbprint } = await openIdentity(dir, 'https://self.invalid', clock);
  const folder = join(dir, RETIRED_KEYS_DIR);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const retired: RetiredKey = { jwk: { kty, crv, x } as JWK, retiredAt: toUtc(clock.now()) };
  replaceFile(join(folder, `${thumbprint}.json`), `${JSON.stringify(retired, null, 2)}\n`);
  // The folder, and the prepared key, must be there before the name of the old key is taken.
  syncFolder(dir);
  renameSync(join(dir, NEXT_KEY_FILE), join(dir, NODE_KEY_FILE));
  syncFolder(dir);
}

async function createJwk(file: string): Promise<JWK> {
  const text = `${JSON.stringify(await generateNodeKey(), null, 2)}\n`;
  return parse(file, createSecret(file, text)) as JWK;
}

function readJwk(file: string): JWK | null {
  const text = readSecret(file);
  return text === null ? null : (parse(file, text) as JWK);
}

function readRetired(dir: string): RetiredKey[] {
  const folder = join(dir, RETIRED_KEYS_DIR);
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new HoldfastError('config_invalid', `${folder} cannot be read.`, { cause });
  }
  return names.map((name) => {
    const file = join(folder, name);
    const found = parse(file, readSecret(file) ?? Buffer.alloc(0)) as Partial<RetiredKey> | null;
    if (found?.jwk?.x === undefined || Number.isNaN(Date.parse(found.retiredAt ?? ''))) {
      throw new HoldfastError('config_invalid', `${file} is not a retired key.`);
    }
    return found as RetiredKey;
  });
}

function parse(file: string, text: Buffer): unknown {
  try {
    return JSON.parse(text.toString('utf8'));
  } catch (cause) {
    throw new HoldfastError('config_invalid', `${file} is not a JWK as JSON.`, { cause });
  }
}
