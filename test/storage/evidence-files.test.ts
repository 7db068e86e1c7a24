import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EvidenceStore, ExpectedBytes } from '../../src/evidence/index.js';
import { openEvidenceFiles } from '../../src/storage/index.js';

let dir: string;
let store: EvidenceStore;
beforeEach(async () => {
  dir = join(await mkdtemp(join(tmpdir(), 'holdfast-files-')), 'evidence');
  store = openEvidenceFiles(dir);
});
afterEach(() => rm(join(dir, '..'), { recursive: true, force: true }));

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

async function* chunksOf(...texts: string[]) {
  for (const text of texts) yield new TextEncoder().encode(text);
}

const put = (text: string, artifactId?: string, expected: Partial<ExpectedBytes> = {}) =>
  store.put(
    chunksOf(...text.split(/(?<=-)/)),
    { mediaType: 'text/plain', filename: 'a.txt', ...(artifactId === undefined ? {} : { artifactId }) },
    { maxBytes: 1000, ...expected },
  );

async function read(digest: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of store.open(digest)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe('evidence files', () => {
  it('[R-053] keep a revocation, with its first reason, for who opens them next; the bytes stay', async () => {
    const { artifactId } = await put('one');
    await put('two', artifactId);
    expect(await store.revoke(artifactId, 3, 'not there')).toBeNull();
    const revoked = await store.revoke(artifactId, 1, 'wrong customer');
    expect(revoked).toMatchObject({ version: 1, revoked: { reason: 'wrong customer' } });
    expect(await store.revoke(artifactId, 1, 'said again')).toEqual(revoked);

    const reopened = openEvidenceFiles(dir);
    expect(await reopened.find(artifactId, 1)).toEqual(revoked);
    expect(await reopened.find(artifactId)).not.toHaveProperty('revoked');
    expect((await reopened.list()).map(({ revoked: mark }) => mark?.reason)).toEqual([
      'wrong customer',
      undefined,
    ]);
    expect(await put('one', artifactId)).toEqual(revoked);
    expect(await read(sha256('one'))).toBe('one');
  });

  it('keep content under its digest, private, and nothing half-written', async () => {
    const artifact = await put('one-two-three');
    expect(artifact).toMatchObject({ version: 1, sha256: sha256('one-two-three'), bytes: 13 });
    expect(artifact.artifactId).toMatch(/^art_[A-Za-z0-9_-]{20}$/);
    expect(await read(artifact.sha256)).toBe('one-two-three');
    const file = join(dir, 'sha256', artifact.sha256.slice(0, 2), artifact.sha256);
    const entry = join(dir, 'artifacts', artifact.artifactId, '1.json');
    for (const path of [file, entry]) expect((await stat(path)).mode & 0o777).toBe(0o600);
    for (const path of [dir, join(dir, 'sha256')]) expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect(await readdir(join(dir, 'tmp'))).toEqual([]);
  });

  it.each(['text/plain; charset=utf-8', 'Text/Plain', 'text', '', 'text/plain\r\nX-Evil: 1', 'text/plain '])(
    'take only a media type that a reference can carry, and %j is none',
    async (mediaType) => {
      const stored = store.put(chunksOf('x'), { mediaType, filename: 'a.txt' }, { maxBytes: 10 });
      await expect(stored).rejects.toMatchObject({ code: 'usage' });
      expect(await store.list()).toEqual([]);
    },
  );

  it('[R-036] number the versions of an artifact, and find the same bytes again', async () => {
    const one = await put('first');
    const two = await put('second', one.artifactId);
    expect(two.version).toBe(2);
    expect(await put('first', one.artifactId)).toEqual(one);
    expect(await store.find(one.artifactId)).toEqual(two);
    expect(await store.find(one.artifactId, 1)).toEqual(one);
    expect(await store.find(one.artifactId, 3)).toBeNull();
    expect(await store.find('art_none')).toBeNull();
    expect(await openEvidenceFiles(dir).list()).toEqual([one, two]);
  });

  it.each<[string, Partial<ExpectedBytes>, string]>([
    ['too many bytes', { maxBytes: 12 }, 'evidence_too_large'],
    ['more than declared', { bytes: 12 }, 'evidence_size_mismatch'],
    ['less than declared', { bytes: 14 }, 'evidence_size_mismatch'],
    ['another digest', { sha256: sha256('other') }, 'evidence_hash_mismatch'],
  ])('keep nothing of %s', async (_, expected, code) => {
    await expect(put('one-two-three', 'art_x', expected)).rejects.toMatchObject({ code });
    expect(await store.find('art_x')).toBeNull();
    expect(await readdir(join(dir, 'tmp'))).toEqual([]);
    expect(existsSync(join(dir, 'sha256'))).toBe(false);
  });

  it('stop reading at the first byte too many', async () => {
    let served = 0;
    async function* endless() {
      for (;;) {
        served += 1;
        yield new Uint8Array(100);
      }
    }
    const info = { mediaType: 'text/plain', filename: 'a.txt' };
    await expect(store.put(endless(), info, { maxBytes: 1000 })).rejects.toMatchObject({
      code: 'evidence_too_large',
    });
    expect(served).toBe(11);
  });

  it('give two writers of one artifact each their version, and the same bytes one', async () => {
    const other = openEvidenceFiles(dir);
    const texts = Array.from({ length: 8 }, (_, at) => `text ${at % 4}`);
    const artifacts = await Promise.all(
      texts.map((text, at) =>
        (at % 2 === 0 ? store : other).put(
          chunksOf(text),
          { mediaType: 'text/plain', filename: 'a.txt', artifactId: 'art_shared' },
          { maxBytes: 100 },
        ),
      ),
    );
    const versions = (await store.list()).map((each) => [each.version, each.sha256]);
    expect(versions.map(([version]) => version).sort()).toEqual([1, 2, 3, 4]);
    expect(new Set(versions.map(([, digest]) => digest)).size).toBe(4);
    expect(artifacts.map((each) => each.sha256)).toEqual(texts.map(sha256));
    for (const text of texts) expect(await read(sha256(text))).toBe(text);
  });

  it('sweep what a crashed writer left, but not what another may still be writing', async () => {
    const old = join(dir, 'tmp', 'old');
    const fresh = join(dir, 'tmp', 'fresh');
    await Promise.all([writeFile(old, 'half'), writeFile(fresh, 'half')]);
    const yesterday = new Date(Date.now() - 86_400_000);
    await utimes(old, yesterday, yesterday);
    openEvidenceFiles(dir);
    expect(await readdir(join(dir, 'tmp'))).toEqual(['fresh']);
  });

  it('never pass changed bytes off as those that were kept', async () => {
    const { sha256: digest } = await put('genuine');
    await writeFile(join(dir, 'sha256', digest.slice(0, 2), digest), 'forgery');
    await expect(read(digest)).rejects.toMatchObject({ code: 'evidence_hash_mismatch' });
    await put('genuine');
    expect(await read(digest)).toBe('genuine');
  });

  it('stay inside their folder whatever they are asked for', async () => {
    await mkdir(join(dir, '..', 'artifacts'), { recursive: true });
    await writeFile(join(dir, '..', 'artifacts', '1.json'), '{}');
    expect(await store.find('../../artifacts')).toBeNull();
    await expect(put('x', '../x')).rejects.toMatchObject({ code: 'usage' });
    await expect(read('../../../../etc/passwd')).rejects.toMatchObject({ code: 'evidence_file_missing' });
    await expect(read(sha256('absent'))).rejects.toMatchObject({ code: 'evidence_file_missing' });
  });
});
