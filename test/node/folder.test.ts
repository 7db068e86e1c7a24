import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/index.js';
import {
  addPeer,
  EVIDENCE_SECRET_FILE,
  initAgent,
  loadEvidenceSecret,
  loadIdentity,
  loadNodeKey,
  NEXT_KEY_FILE,
  NODE_KEY_FILE,
  prepareKey,
  RETIRED_KEYS_DIR,
  readConfig,
  rotateKey,
} from '../../src/node/index.js';
import { temporaryFolder } from '../cli/support.js';

const KEY = 'a'.repeat(43);
let folder: ReturnType<typeof temporaryFolder>;
let dir: string;

beforeEach(async () => {
  folder = temporaryFolder();
  dir = join(folder.path, 'triage');
  await initAgent({ dir, agent: 'triage', url: 'http://127.0.0.1:4100/', ledger: '../ledger.db' });
});

afterEach(() => folder.remove());

describe("an agent's folder", () => {
  it('holds a configuration that is valid as written', () => {
    expect(readConfig(dir)).toMatchObject({
      agent: 'triage',
      url: 'http://127.0.0.1:4100',
      ledger: '../ledger.db',
      listen: { port: 4100 },
      receives: ['refund-dispute/1'],
      network: { loopback: ['127.0.0.1:4100'] },
    });
  });

  it('writes a valid configuration for any name, path and public URL', async () => {
    const other = join(folder.path, 'other');
    await initAgent({
      dir: other,
      agent: '007',
      url: 'https://agents.example.com/triage',
      ledger: 'a: b #c.db',
    });
    expect(readConfig(other)).toMatchObject({
      agent: '007',
      url: 'https://agents.example.com/triage',
      ledger: 'a: b #c.db',
      network: { loopback: [] },
    });
  });

  it('keeps the key and the evidence secret from other users', () => {
    for (const name of [NODE_KEY_FILE, EVIDENCE_SECRET_FILE]) {
      expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
    }
  });

  it('refuses a key or secret that other users can read', async () => {
    chmodSync(join(dir, NODE_KEY_FILE), 0o640);
    await expect(loadNodeKey(dir)).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('chmod 600'),
    });
    chmodSync(join(dir, EVIDENCE_SECRET_FILE), 0o604);
    expect(() => loadEvidenceSecret(dir)).toThrow(/mode 0604/);
  });

  it('keeps the key it has, and makes one only once', async () => {
    const { thumbprint } = await loadIdentity(dir);
    expect(thumbprint).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const fresh = join(folder.path);
    const keys = await Promise.all([loadNodeKey(fresh), loadNodeKey(fresh), loadNodeKey(fresh)]);
    expect(new Set(keys.map(({ d }) => d)).size).toBe(1);
    expect((await loadIdentity(dir)).thumbprint).toBe(thumbprint);
  });

  it('refuses a key file that holds no key', async () => {
    writeFileSync(join(dir, NODE_KEY_FILE), '{"kty":"RSA"}');
    await expect(loadIdentity(dir)).rejects.toMatchObject({ code: 'config_invalid' });
    writeFileSync(join(dir, EVIDENCE_SECRET_FILE), 'short');
    expect(() => loadEvidenceSecret(dir)).toThrow(/32 bytes/);
  });

  it('is not made twice', async () => {
    const before = readFileSync(join(dir, 'holdfast.yaml'), 'utf8');
    await expect(
      initAgent({ dir, agent: 'x', url: 'http://127.0.0.1:1', ledger: 'x' }),
    ).rejects.toMatchObject({ code: 'already_exists' });
    expect(readFileSync(join(dir, 'holdfast.yaml'), 'utf8')).toBe(before);
  });

  it('takes a peer and keeps every other line, comments too', () => {
    const before = readFileSync(join(dir, 'holdfast.yaml'), 'utf8');
    const config = addPeer(dir, {
      url: 'http://127.0.0.1:4200/',
      key: KEY,
      contracts: ['refund-dispute/1'],
      skills: ['billing'],
    });
    expect(config.peers).toEqual([
      { url: 'http://127.0.0.1:4200', key: KEY, contracts: ['refund-dispute/1'], skills: ['billing'] },
    ]);
    expect(config.network.loopback).toEqual(['127.0.0.1:4100', '127.0.0.1:4200']);
    const after = readFileSync(join(dir, 'holdfast.yaml'), 'utf8').split('\n');
    for (const line of before.split('\n')) if (line !== 'peers: []') expect(after).toContain(line);
  });

  it('takes a peer once, or replaces it, and changes nothing for a wrong one', () => {
    const peer = {
      url: 'https://billing.example.com',
      key: KEY,
      contracts: ['refund-dispute/1'],
      skills: ['billing'],
    };
    addPeer(dir, peer);
    expect(() => addPeer(dir, peer)).toThrow(expect.objectContaining({ code: 'already_exists' }));
    const other = { ...peer, key: 'b'.repeat(43) };
    expect(addPeer(dir, other, { replace: true }).peers).toEqual([other]);
    const before = readFileSync(join(dir, 'holdfast.yaml'), 'utf8');
    expect(() => addPeer(dir, { ...peer, url: 'https://other.example.com', key: 'x' })).toThrow(
      /peers\[1\]\.key/,
    );
    expect(readFileSync(join(dir, 'holdfast.yaml'), 'utf8')).toBe(before);
  });

  it('changes its key by steps, each of which may be the last before a crash', async () => {
    const first = (await loadIdentity(dir)).thumbprint;
    await prepareKey(dir);
    await prepareKey(dir);
    const prepared = await loadIdentity(dir);
    expect(prepared).toMatchObject({ thumbprint: first, retired: [] });
    // As a crash leaves it that comes between the old key's record and the change.
    const kept = readFileSync(join(dir, NODE_KEY_FILE));
    const next = readFileSync(join(dir, NEXT_KEY_FILE));
    await rotateKey(dir, systemClock);
    writeFileSync(join(dir, NODE_KEY_FILE), kept, { mode: 0o600 });
    writeFileSync(join(dir, NEXT_KEY_FILE), next, { mode: 0o600 });
    expect(await loadIdentity(dir)).toMatchObject({ thumbprint: first, retired: [] });

    await rotateKey(dir, systemClock);
    const second = await loadIdentity(dir);
    expect(second.thumbprint).toBe(prepared.nextThumbprint);
    expect(second.retired).toMatchObject([{ thumbprint: first }]);
    await rotateKey(dir, systemClock);
    const third = await loadIdentity(dir);
    expect(third.retired.map(({ thumbprint }) => thumbprint)).toContain(first);
    expect(third.retired).toHaveLength(2);
    for (const name of readdirSync(join(dir, RETIRED_KEYS_DIR))) {
      const file = join(dir, RETIRED_KEYS_DIR, name);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(JSON.parse(readFileSync(file, 'utf8')).jwk.d).toBeUndefined();
    }
  });
});
