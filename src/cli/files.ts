import { readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { DEFAULT_LIMITS, HoldfastError, isHoldfastError } from '../core/index.js';
import { type CaseFile, parseCaseFile } from '../envelope/index.js';

/** Far above any case; what leaves of it is bounded again. */
const MAX_CASE_FILE_BYTES = 8 * 1024 * 1024;

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
  try {
    return readCase(bytes);
  } catch (error) {
    throw isHoldfastError(error) ? inFile(error, file, bytes) : error;
  }
}

function readCase(bytes: Buffer): CaseFile {
  return parseCaseFile(bytes, { ...DEFAULT_LIMITS, maxNodes: 100_000, maxStringBytes: MAX_CASE_FILE_BYTES });
}

/** The same error with the file that has it, and the place where it is no JSON. */
function inFile({ code, message, fields, data }: HoldfastError, file: string, bytes: Buffer): HoldfastError {
  const { at, problem } = data;
  if (typeof at !== 'number') {
    const where = code === 'case_file_invalid' ? 'The case file is not valid.' : message;
    return new HoldfastError(code, `${file}: ${where}`, { fields, data: { ...data, file } });
  }
  const before = bytes.subarray(0, at).toString('utf8').split('\n');
  const [line, column] = [before.length, (before.at(-1) ?? '').length + 1];
  const what = String(problem).replaceAll('_', ' ');
  return new HoldfastError(code, `${file}:${line}:${column} is not strict JSON: ${what}.`, {
    data: { ...data, file, line, column },
  });
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission is denied',
  EPERM: 'permission is denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'its path leads through a file',
  EROFS: 'the disk is read-only',
  ENOSPC: 'the disk is full',
};

/** Why a file cannot be read or written, for people. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return REASONS[code ?? ''] ?? message;
}

/** Writes a file that is not there yet, for its owner alone. @throws already_exists, usage */
export function writeNew(file: string, content: string | Uint8Array): void {
  try {
    writeFileSync(file, content, { flag: 'wx', mode: 0o600 });
  } catch (cause) {
    const exists = (cause as NodeJS.ErrnoException).code === 'EEXIST';
    throw new HoldfastError(
      exists ? 'already_exists' : 'usage',
      exists ? `${file} exists already.` : `${file} cannot be written: ${reasonOf(cause)}.`,
      { cause },
    );
  }
}

/** An export of the audit, or a signed head. @throws usage */
export function readExport(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new HoldfastError('usage', `The file ${file} cannot be read.`, { cause });
  }
}
