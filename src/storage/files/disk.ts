import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, link, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** A temporary file older than this belongs to a process that is gone. */
const STALE_MS = 60 * 60 * 1000;

/** Makes the folder, private to its owner, and removes what crashed writers left behind. */
export function openFolder(dir: string): { temp: string } {
  const temp = join(dir, 'tmp');
  mkdirSync(temp, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(temp)) {
    const path = join(temp, name);
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    if (age > STALE_MS) rmSync(path, { force: true, recursive: true });
  }
  return { temp };
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Makes a folder so that it is still there after a crash. */
async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  await syncFolder(dirname(first));
  if (first !== path) await syncFolder(dirname(path));
}

/** Runs `write` on a fresh private file; the file is on disk, whole, when `keep` is called with its path. */
export async function writeFileSafely<T>(
  temp: string,
  write: (file: FileHandle) => Promise<T>,
  keep: (path: string, written: T) => Promise<void>,
): Promise<T> {
  const path = join(temp, randomBytes(12).toString('hex'));
  const file = await open(path, 'wx', 0o600);
  try {
    let written: T;
    try {
      written = await write(file);
      await file.sync();
    } finally {
      await file.close();
    }
    await keep(path, written);
    return written;
  } finally {
    await rm(path, { force: true });
  }
}

/** Puts the file in its place, over a twin with the same content. */
export async function moveInto(path: string, target: string): Promise<void> {
  await makeFolder(dirname(target));
  await rename(path, target);
  await syncFolder(dirname(target));
}

/** Puts the file in its place only if nothing is there; whole or not at all, whoever else tries. */
export async function linkInto(path: string, target: string): Promise<void> {
  await makeFolder(dirname(target));
  await link(path, target);
  await syncFolder(dirname(target));
}

export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
