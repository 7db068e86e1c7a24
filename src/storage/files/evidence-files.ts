import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HoldfastError, MEDIA_TYPE_PATTERN, newId, SHA256_PATTERN, toUtc } from '../../core/index.js';
import type { EvidenceArtifact, EvidenceStore, ExpectedBytes } from '../../evidence/index.js';
import { hasCode, linkInto, moveInto, openFolder, writeFileSafely } from './disk.js';

const ARTIFACT_ID = /^[A-Za-z0-9_-]{1,128}$/;
const VERSION_FILE = /^([1-9][0-9]{0,9})\.json$/;

interface Content {
  readonly sha256: string;
  readonly bytes: number;
}

/** Reads to the end, or to the first byte too many. @throws evidence_too_large, evidence_size_mismatch, evidence_hash_mismatch */
async function copy(
  content: AsyncIterable<Uint8Array>,
  expected: ExpectedBytes,
  write: (chunk: Uint8Array) => Promise<unknown>,
): Promise<Content> {
  const hash = createHash('sha256');
  let bytes = 0;
  const sizeMismatch = () =>
    new HoldfastError('evidence_size_mismatch', undefined, {
      data: { declared: expected.bytes ?? null, read: bytes },
    });
  for await (const chunk of content) {
    bytes += chunk.length;
    if (bytes > expected.maxBytes) {
      throw new HoldfastError('evidence_too_large', undefined, { data: { maxBytes: expected.maxBytes } });
    }
    if (expected.bytes !== undefined && bytes > expected.bytes) throw sizeMismatch();
    hash.update(chunk);
    await write(chunk);
  }
  if (expected.bytes !== undefined && bytes !== expected.bytes) throw sizeMismatch();
  const sha256 = hash.digest('hex');
  if (expected.sha256 !== undefined && expected.sha256 !== sha256) {
    throw new HoldfastError('evidence_hash_mismatch', undefined, {
      data: { declared: expected.sha256, read: sha256 },
    });
  }
  return { sha256, bytes };
}

/**
 * Bytes once under `sha256/ab/abc…`, and one small file `artifacts/<id>/<version>.json` per artifact version, which never
 * changes; `<version>.revoked.json` beside it says that it was revoked. Everything is written beside its place, forced to disk and then moved, so that a crash leaves at most a temporary
 * file; several processes may use the folder at once.
 */
class EvidenceFiles implements EvidenceStore {
  constructor(
    private readonly dir: string,
    private readonly temp: string,
  ) {}

  async put(
    content: AsyncIterable<Uint8Array>,
    info: { mediaType: string; filename: string; artifactId?: string },
    expected: ExpectedBytes,
  ): Promise<EvidenceArtifact> {
    const artifactId = info.artifactId ?? newId('art');
    if (!ARTIFACT_ID.test(artifactId)) throw new HoldfastError('usage', 'The artifact id has another form.');
    if (!MEDIA_TYPE_PATTERN.test(info.mediaType)) {
      throw new HoldfastError('usage', 'A media type is `type/subtype` in lower case, without parameters.');
    }
    const stored = await writeFileSafely(
      this.temp,
      (file) => copy(content, expected, (chunk) => file.writeFile(chunk)),
      (path, { sha256 }) => moveInto(path, this.contentPath(sha256)),
    );
    const { mediaType, filename } = info;
    const artifact = { artifactId, ...stored, mediaType, filename, storedAt: toUtc(new Date()) };
    for (;;) {
      const versions = await this.versionsOf(artifactId);
      const same = versions.find((each) => each.sha256 === stored.sha256);
      if (same !== undefined) return same;
      const added = await this.addVersion({ ...artifact, version: (versions.at(-1)?.version ?? 0) + 1 });
      if (added !== null) return added;
    }
  }

  async find(artifactId: string, version?: number): Promise<EvidenceArtifact | null> {
    if (!ARTIFACT_ID.test(artifactId)) return null;
    const versions = await this.versionsOf(artifactId);
    return (
      (version === undefined ? versions.at(-1) : versions.find((each) => each.version === version)) ?? null
    );
  }

  /** Oldest first. */
  async list(): Promise<EvidenceArtifact[]> {
    const ids = (await listFolder(join(this.dir, 'artifacts'))).filter((name) => ARTIFACT_ID.test(name));
    const artifacts = await Promise.all(ids.map((id) => this.versionsOf(id)));
    const compare = (a: EvidenceArtifact, b: EvidenceArtifact) =>
      a.storedAt.localeCompare(b.storedAt) ||
      a.artifactId.localeCompare(b.artifactId) ||
      a.version - b.version;
    return artifacts.flat().sort(compare);
  }

  async revoke(artifactId: string, version: number, reason: string): Promise<EvidenceArtifact | null> {
    if ((await this.find(artifactId, version)) === null) return null;
    const target = join(this.dir, 'artifacts', artifactId, `${version}.revoked.json`);
    await this.addFile(target, { at: toUtc(new Date()), reason });
    return this.find(artifactId, version);
  }

  /** The digest is checked again at the end: bytes that changed on disk are never passed off as those that were kept. */
  async *open(sha256: string): AsyncGenerator<Uint8Array> {
    if (!SHA256_PATTERN.test(sha256)) throw new HoldfastError('evidence_file_missing');
    const hash = createHash('sha256');
    try {
      for await (const chunk of createReadStream(this.contentPath(sha256))) {
        hash.update(chunk);
        yield chunk;
      }
    } catch (error) {
      throw hasCode(error, 'ENOENT')
        ? new HoldfastError('evidence_file_missing', undefined, { data: { sha256 } })
        : error;
    }
    if (hash.digest('hex') !== sha256) throw new HoldfastError('evidence_hash_mismatch');
  }

  private contentPath(sha256: string): string {
    return join(this.dir, 'sha256', sha256.slice(0, 2), sha256);
  }

  /** Ascending. */
  private async versionsOf(artifactId: string): Promise<EvidenceArtifact[]> {
    const folder = join(this.dir, 'artifacts', artifactId);
    const names = new Set(await listFolder(folder));
    const files = [...names].filter((name) => VERSION_FILE.test(name));
    const parse = async (name: string) => JSON.parse(await readFile(join(folder, name), 'utf8'));
    const read = async (name: string): Promise<EvidenceArtifact> => {
      const mark = name.replace(/json$/, 'revoked.json');
      return { ...(await parse(name)), ...(names.has(mark) ? { revoked: await parse(mark) } : {}) };
    };
    return (await Promise.all(files.map(read))).sort((a, b) => a.version - b.version);
  }

  /** Null where another writer took the version first. */
  private async addVersion(artifact: EvidenceArtifact): Promise<EvidenceArtifact | null> {
    const target = join(this.dir, 'artifacts', artifact.artifactId, `${artifact.version}.json`);
    return (await this.addFile(target, artifact)) ? artifact : null;
  }

  /** False where the file is there already. */
  private async addFile(target: string, content: object): Promise<boolean> {
    try {
      await writeFileSafely(
        this.temp,
        (file) => file.writeFile(JSON.stringify(content)),
        (path) => linkInto(path, target),
      );
      return true;
    } catch (error) {
      if (hasCode(error, 'EEXIST')) return false;
      throw error;
    }
  }
}

async function listFolder(path: string): Promise<string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}

/** The evidence store in a folder, which is made if need be (mode 0700, files 0600). */
export function openEvidenceFiles(dir: string): EvidenceStore {
  return new EvidenceFiles(dir, openFolder(dir).temp);
}
