import { open } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { Option } from 'commander';
import { HoldfastError, SHA256_PATTERN } from '../core/index.js';
import { findPersonalData, redactText } from '../envelope/index.js';
import type { EvidenceArtifact } from '../evidence/index.js';
import { formatSize, type Holdfast } from '../node/index.js';
import { reasonOf } from './files.js';

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.txt': 'text/plain',
  '.log': 'text/plain',
  '.md': 'text/markdown',
  '.csv': 'text/csv',
  '.json': 'application/json',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
};

export const PRIVACY_OPTIONS = {
  redact: () =>
    new Option('--redact', 'replace phone numbers, mail addresses and the like in text before it is stored'),
  asIs: () =>
    new Option('--as-is', 'store text as it is, even where it seems to hold personal data').conflicts(
      'redact',
    ),
};

interface ReadOptions {
  readonly mediaType?: string;
  readonly redact?: boolean;
  readonly asIs?: boolean;
}

/** A file that may become evidence, read and looked through, but not stored yet. */
export interface EvidenceFile {
  readonly filename: string;
  readonly mediaType: string;
  readonly content: Buffer;
  /** Places that were redacted; `null` where none were looked for. */
  readonly replaced: number | null;
}

/** @throws evidence_file_missing, evidence_too_large, usage, personal_data unless `redact` or `asIs` says what to do about it */
export async function readEvidenceFile(
  holdfast: Holdfast,
  file: string,
  options: ReadOptions,
): Promise<EvidenceFile> {
  const bytes = await readWhole(file, holdfast.config.limits.max_evidence);
  const filename = basename(file);
  const mediaType = options.mediaType ?? MEDIA_TYPES[extname(file).toLowerCase()];
  if (mediaType === undefined) {
    const message = `The media type of ${file} is not known by its name. Give it with --media-type.`;
    throw new HoldfastError('usage', message);
  }
  const asItIs = { filename, mediaType, content: bytes, replaced: null };
  if (!/^text\/|^application\/json$/.test(mediaType)) {
    if (options.redact) throw new HoldfastError('usage', `${file} is not text, so it cannot be redacted.`);
    return asItIs;
  }
  const text = bytes.toString('utf8');
  if (options.redact) {
    const { text: redacted, removed } = redactText(text);
    const replaced = removed.reduce((sum, { count }) => sum + count, 0);
    return { ...asItIs, content: Buffer.from(redacted), replaced };
  }
  const found = options.asIs ? [] : findPersonalData(text);
  if (found.length === 0) return asItIs;
  const what = found.map((problem) => problem.replace(/^holds /, '').replace(/^looks/, 'what looks'));
  throw new HoldfastError(
    'personal_data',
    `${filename} holds ${what.join(' and ')}. Nothing was stored: --redact replaces that first, --as-is stores the file as it is.`,
    { data: { file } },
  );
}

/** Adds a version to the artifact, or a new one where none is named. @throws usage */
export function storeEvidenceFile(
  holdfast: Holdfast,
  { filename, mediaType, content }: EvidenceFile,
  artifactId?: string,
): Promise<EvidenceArtifact> {
  const info = { filename, mediaType, ...(artifactId === undefined ? {} : { artifactId }) };
  return holdfast.addEvidence(content, info);
}

/** What this agent's own store holds under an artifact id, an `id@version` or a digest. @throws evidence_file_missing, usage */
export async function findEvidence(holdfast: Holdfast, name: string): Promise<EvidenceArtifact> {
  const { evidence } = holdfast;
  const found = SHA256_PATTERN.test(name)
    ? (await evidence.list()).find(({ sha256 }) => sha256 === name)
    : await byArtifact(holdfast, name);
  if (found) return found;
  throw new HoldfastError(
    'evidence_file_missing',
    `This agent has no evidence ${name}. \`holdfast evidence list\` shows what it has.`,
    { data: { name } },
  );
}

function byArtifact({ evidence }: Holdfast, name: string): Promise<EvidenceArtifact | null> {
  const { artifactId, version } = parseArtifact('The evidence', name);
  return evidence.find(artifactId, version);
}

/** @throws usage */
export function parseArtifact(what: string, text: string): { artifactId: string; version?: number } {
  const match = /^([^@]+)(?:@([1-9]\d{0,8}))?$/.exec(text);
  if (!match?.[1]) throw new HoldfastError('usage', `${what} is an artifact id, or id@version.`);
  return { artifactId: match[1], ...(match[2] === undefined ? {} : { version: Number(match[2]) }) };
}

async function readWhole(file: string, maxBytes: number): Promise<Buffer> {
  try {
    const handle = await open(file, 'r');
    try {
      const stat = await handle.stat();
      if (!stat.isFile()) throw new Error('it is not a file');
      if (stat.size > maxBytes) {
        const message = `${file} is larger than limits.max_evidence, ${formatSize(maxBytes)}.`;
        throw new HoldfastError('evidence_too_large', message, { data: { maxBytes } });
      }
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if (cause instanceof HoldfastError) throw cause;
    const message = `The evidence file ${file} cannot be read: ${reasonOf(cause)}.`;
    throw new HoldfastError('evidence_file_missing', message, { cause });
  }
}
