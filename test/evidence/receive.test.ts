import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_LIMITS, HoldfastError } from '../../src/core/index.js';
import {
  type EvidenceArtifact,
  type EvidenceDownloader,
  type EvidenceReference,
  type EvidenceStore,
  receiveEvidence,
} from '../../src/evidence/index.js';
import { openEvidenceFiles } from '../../src/storage/index.js';

const content = new TextEncoder().encode('Ann: I was charged twice.');
const now = new Date('2026-01-31T10:00:00Z');
const reference: EvidenceReference = {
  url: 'https://triage.example/evidence/art_1/2?sig=x',
  media_type: 'text/plain',
  filename: 'transcript.txt',
  bytes: content.length,
  sha256: createHash('sha256').update(content).digest('hex'),
  artifact_id: 'art_1',
  version: 2,
  expires_at: '2026-02-01T10:00:00.000Z',
};

let dir: string;
let store: EvidenceStore;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'holdfast-receive-'));
  store = openEvidenceFiles(dir);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** Serves chunks and counts what was asked of it. */
class Server implements EvidenceDownloader {
  fetched = 0;
  ended = 0;

  constructor(
    private readonly chunks: readonly (Uint8Array | Error)[] = [content],
    private readonly mediaType: string | null = 'text/plain; charset=utf-8',
  ) {}

  async download() {
    this.fetched += 1;
    return { mediaType: this.mediaType, body: this.body() };
  }

  private async *body() {
    try {
      for (const chunk of this.chunks) {
        if (chunk instanceof Error) throw chunk;
        yield chunk;
      }
    } finally {
      this.ended += 1;
    }
  }
}

const receive = (
  change: Partial<EvidenceReference> = {},
  downloader: EvidenceDownloader = new Server(),
  more = {},
) =>
  receiveEvidence(
    { ...reference, ...change },
    { downloader, store, limits: DEFAULT_LIMITS, now, acceptBy: now, ...more },
  );

async function refusal(given: Promise<EvidenceArtifact>): Promise<string> {
  const error = await given.then(
    () => new Error('accepted'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof HoldfastError)) throw error;
  return error.code;
}

async function readAll(sha256: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of store.open(sha256)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe('receiving evidence', () => {
  it('fetches once and keeps exactly the bytes it hashed', async () => {
    const server = new Server([content.subarray(0, 5), content.subarray(5)]);
    const artifact = await receive({}, server);
    expect(artifact).toMatchObject({
      sha256: reference.sha256,
      bytes: content.length,
      mediaType: 'text/plain',
    });
    expect(await readAll(artifact.sha256)).toBe('Ann: I was charged twice.');
    expect(server).toMatchObject({ fetched: 1, ended: 1 });
  });

  it('keeps one artifact however often the same is delivered', async () => {
    const [one, two] = [await receive(), await receive({ url: `${reference.url}2` })];
    expect(two).toEqual(one);
    expect(await store.list()).toEqual([one]);
  });

  it.each<[string, Partial<EvidenceReference>, string]>([
    ['without a hash', { sha256: '' }, 'evidence_hash_missing'],
    ['with a hash in upper case', { sha256: reference.sha256.toUpperCase() }, 'evidence_hash_missing'],
    ['with a hash of another sort', { sha256: 'a'.repeat(40) }, 'evidence_hash_missing'],
    ['that has expired', { expires_at: '2026-01-31T10:00:00.000Z' }, 'evidence_expired'],
    ['that expires on no day', { expires_at: '2026-02-30T10:00:00Z' }, 'evidence_expired'],
    ['that says it is too large', { bytes: DEFAULT_LIMITS.maxEvidenceBytes + 1 }, 'evidence_too_large'],
  ])('[R-047][R-051][R-170] refuses a reference %s before anything is fetched', async (_, change, code) => {
    const server = new Server();
    expect(await refusal(receive(change, server))).toBe(code);
    expect(server.fetched).toBe(0);
  });

  it.each<[string, Partial<EvidenceReference>, Server, string]>([
    ['other bytes', { sha256: 'a'.repeat(64) }, new Server(), 'evidence_hash_mismatch'],
    ['fewer bytes', { bytes: content.length + 1 }, new Server(), 'evidence_size_mismatch'],
    ['more bytes', { bytes: content.length - 1 }, new Server(), 'evidence_size_mismatch'],
    ['another type', {}, new Server([content], 'text/html'), 'evidence_media_type'],
    ['no type', {}, new Server([content], null), 'evidence_media_type'],
    ['a broken stream', {}, new Server([content.subarray(0, 5), new Error('reset')]), 'evidence_unreadable'],
  ])('[R-047] refuses %s, keeps nothing and lets go of the connection', async (_, change, server, code) => {
    expect(await refusal(receive(change, server))).toBe(code);
    expect(server).toMatchObject({ fetched: 1, ended: 1 });
    expect(await store.list()).toEqual([]);
    await expect(readAll(reference.sha256)).rejects.toMatchObject({ code: 'evidence_file_missing' });
  });

  it('[R-047] calls whatever fails on the way unreadable, but passes a forbidden address on', async () => {
    const failing = (error: Error): EvidenceDownloader => ({ download: () => Promise.reject(error) });
    expect(await refusal(receive({}, failing(new Error('ECONNREFUSED'))))).toBe('evidence_unreadable');
    expect(await refusal(receive({}, failing(new HoldfastError('peer_unreachable'))))).toBe(
      'evidence_unreadable',
    );
    expect(await refusal(receive({}, failing(new HoldfastError('evidence_forbidden'))))).toBe(
      'evidence_forbidden',
    );
  });

  it('does not blame the sender for a disk of its own that fails', async () => {
    const broken = { ...store, put: () => Promise.reject(new Error('ENOSPC')) };
    await expect(receive({}, new Server(), { store: broken })).rejects.toThrow('ENOSPC');
  });
});
