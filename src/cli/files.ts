import { open, readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { DEFAULT_LIMITS, HoldfastError } from '../core/index.js';
import { type CaseFile, findPersonalData, parseCaseFile, redactText } from '../envelope/index.js';
import type { EvidenceArtifact } from '../evidence/index.js';
import type { Holdfast } from '../node/index.js';

/** Far above any case; what leaves of it is bounded again. */
const MAX_CASE_FILE_BYTES = 8 * 1024 * 1024;

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

/** @throws case_file_invalid naming what is wrong with it */
export async function readCaseFile(file: string): Promise<CaseFile> {
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (cause) {
    throw new HoldfastError(
      'case_file_invalid',
      `The case file ${file} cannot be read: ${reasonOf(cause)}.`,
      { cause },
    );
  }
  if (bytes.length > MAX_CASE_FILE_BYTES) {
    throw new HoldfastError('case_file_invalid', `The case file ${file} is larger than 8 MiB.`);
  }
  return parseCaseFile(bytes, { ...DEFAULT_LIMITS, maxNodes: 100_000, maxStringBytes: MAX_CASE_FILE_BYTES });
}

/** A file that is to become evidence; found to be there and readable, but not stored yet. */
export interface EvidenceFile {
  readonly file: string;
  readonly filename: string;
  readonly mediaType: string;
}

/** @throws evidence_file_missing, usage */
export async function findEvidenceFile(file: string, mediaType?: string): Promise<EvidenceFile> {
  try {
    const handle = await open(file, 'r');
    try {
      if (!(await handle.stat()).isFile()) throw new Error('it is not a file');
    } finally {
      await handle.close();
    }
  } catch (cause) {
    const message = `The evidence file ${file} cannot be read: ${reasonOf(cause)}.`;
    throw new HoldfastError('evidence_file_missing', message, { cause });
  }
  const type = mediaType ?? MEDIA_TYPES[extname(file).toLowerCase()];
  if (type === undefined) {
    throw new HoldfastError(
      'usage',
      `The media type of ${file} is not known by its name. Give it with --media-type.`,
    );
  }
  return { file, filename: basename(file), mediaType: type };
}

/** Stores the file as it is, or with personal data replaced. `replaced` counts the places; `null` where nothing was looked for. */
export async function storeEvidenceFile(
  holdfast: Holdfast,
  { file, filename, mediaType }: EvidenceFile,
  options: { artifactId?: string; redact: boolean; warn(message: string): void },
): Promise<{ artifact: EvidenceArtifact; replaced: number | null }> {
  const info = {
    filename,
    mediaType,
    ...(options.artifactId === undefined ? {} : { artifactId: options.artifactId }),
  };
  const bytes = await readFile(file);
  if (!/^text\/|^application\/json$/.test(mediaType)) {
    if (options.redact) throw new HoldfastError('usage', `${file} is not text, so it cannot be redacted.`);
    return { artifact: await holdfast.addEvidence(bytes, info), replaced: null };
  }
  const text = bytes.toString('utf8');
  if (options.redact) {
    const { text: redacted, removed } = redactText(text);
    const artifact = await holdfast.addEvidence(Buffer.from(redacted), info);
    return { artifact, replaced: removed.reduce((sum, { count }) => sum + count, 0) };
  }
  const found = findPersonalData(text);
  if (found.length > 0)
    options.warn(`${filename} ${found.join(', ')}; --redact replaces it before it is stored.`);
  return { artifact: await holdfast.addEvidence(bytes, info), replaced: null };
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' ? 'there is no such file' : code === 'EACCES' ? 'permission is denied' : message;
}
