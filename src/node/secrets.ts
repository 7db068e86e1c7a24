import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { HoldfastError, newId } from '../core/index.js';

/** The secret under which evidence URLs are signed. */
export const EVIDENCE_SECRET_FILE = 'evidence.secret';

const OWNER_ONLY = 0o600;

/**
 * The 32 bytes that sign evidence URLs; made on first use.
 * @throws config_invalid when others can read the file or it has another length
 */
export function loadEvidenceSecret(dir: string): Uint8Array {
  const file = join(dir, EVIDENCE_SECRET_FILE);
  const secret = readSecret(file) ?? createSecret(file, randomBytes(32));
  if (secret.length !== 32) throw new HoldfastError('config_invalid', `${file} must hold exactly 32 bytes.`);
  return secret;
}

/** The file's bytes, or `null` where there is none. The open file is what is checked, so that it cannot be swapped in between. */
export function readSecret(file: string): Buffer | null {
  let handle: number;
  try {
    handle = openSync(file, 'r');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new HoldfastError('config_invalid', `${file} cannot be read.`, { cause });
  }
  try {
    const mode = fstatSync(handle).mode & 0o777;
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      throw new HoldfastError(
        'config_invalid',
        `${file} is open to other users (mode ${mode.toString(8).padStart(4, '0')}). Run \`chmod 600 ${file}\`; ` +
          'if someone else may have read it, delete it, let a new one be made, and tell your peers the new thumbprint.',
        { data: { file, mode: mode.toString(8) } },
      );
    }
    return readFileSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Whole or not at all: a crash leaves no half key, and of two processes that start at once both use the first one's. */
export function createSecret(file: string, content: string | Uint8Array): Buffer {
  const draft = `${file}.${newId('new')}`;
  try {
    // On the disk before its name is: tokens and receipts under a key that a power cut takes away could never be verified again.
    writeFileSync(draft, content, { mode: OWNER_ONLY, flag: 'wx', flush: true });
    linkSync(draft, file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw new HoldfastError('config_invalid', `${file} cannot be written.`, { cause });
    }
  } finally {
    unlinkIfThere(draft);
  }
  return readSecret(file) as Buffer;
}

/** The old content or the new one, whole and on the disk, whenever the machine stops. @throws config_invalid */
export function replaceFile(file: string, content: string): void {
  const draft = `${file}.${newId('new')}`;
  try {
    writeFileSync(draft, content, { mode: OWNER_ONLY, flag: 'wx', flush: true });
    renameSync(draft, file);
    syncFolder(dirname(file));
  } catch (cause) {
    throw new HoldfastError('config_invalid', `${file} cannot be written.`, { cause });
  } finally {
    unlinkIfThere(draft);
  }
}

/** Names in a folder are on the disk only once the folder is. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function unlinkIfThere(file: string): void {
  try {
    unlinkSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
