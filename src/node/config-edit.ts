import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Document, isSeq, parseDocument } from 'yaml';
import { HoldfastError, newId, normalizeAgentUrl } from '../core/index.js';
import { CONFIG_FILE, parseConfig, readConfig } from './config.js';
import type { Config } from './config-schema.js';
import { configTemplate, type NewAgent } from './config-template.js';
import { loopbackAddress } from './loopback.js';
import { loadNodeKey } from './node-keys.js';
import { loadEvidenceSecret } from './secrets.js';

/**
 * Writes a configuration with comments, the node's key and its evidence secret.
 * @throws already_exists when the folder has a configuration; config_invalid
 */
export async function initAgent(input: NewAgent): Promise<Config> {
  const file = join(input.dir, CONFIG_FILE);
  if (existsSync(file)) {
    throw new HoldfastError(
      'already_exists',
      `${file} exists. Edit it, or choose another folder with --dir.`,
    );
  }
  const text = configTemplate({ ...input, url: normalizeAgentUrl(input.url) });
  const config = parseConfig(text);
  mkdirSync(input.dir, { recursive: true, mode: 0o700 });
  await loadNodeKey(input.dir);
  loadEvidenceSecret(input.dir);
  // The URL of a ledger may hold a password.
  writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
  return config;
}

export interface NewPeer {
  readonly url: string;
  readonly key: string;
  readonly nextKey?: string | undefined;
  readonly contracts: readonly string[];
  readonly skills: readonly string[];
}

/**
 * Adds a peer to the configuration and keeps everything else in it, comments too. A peer on this machine is also listed under
 * `network.loopback`, as loopback is reached only where the configuration says so.
 * @throws already_exists unless `replace` is set; config_invalid
 */
export function addPeer(dir: string, peer: NewPeer, options: { replace?: boolean } = {}): Config {
  const known = readConfig(dir).peers;
  const url = normalizeAgentUrl(peer.url);
  const at = known.findIndex((other) => other.url === url);
  if (at >= 0 && !options.replace) {
    throw new HoldfastError(
      'already_exists',
      `The peer ${url} is configured already. Use --replace to change it.`,
    );
  }
  const file = join(dir, CONFIG_FILE);
  const document = parseDocument(readFileSync(file, 'utf8'));
  const entry = {
    url,
    key: peer.key,
    ...(peer.nextKey === undefined ? {} : { next_key: peer.nextKey }),
    contracts: [...peer.contracts],
    skills: [...peer.skills],
  };
  if (at >= 0) document.setIn(['peers', at], document.createNode(entry));
  else append(document, ['peers'], entry);
  const address = loopbackAddress(url);
  const listed = (document.getIn(['network', 'loopback']) as { toJSON(): unknown } | undefined)?.toJSON();
  if (address && !(Array.isArray(listed) && listed.includes(address))) {
    append(document, ['network', 'loopback'], address);
  }
  const text = document.toString({ lineWidth: 0, flowCollectionPadding: false });
  const config = parseConfig(text);
  const draft = `${file}.${newId('new')}`;
  writeFileSync(draft, text, { flag: 'wx', flush: true, mode: statSync(file).mode & 0o777 });
  renameSync(draft, file);
  return config;
}

function append(document: Document, path: string[], value: unknown): void {
  const list = document.getIn(path, true);
  if (isSeq(list)) {
    // `peers: []` would otherwise grow on one line.
    if (list.items.length === 0) list.flow = false;
    list.add(document.createNode(value));
  } else document.setIn(path, document.createNode([value]));
}
