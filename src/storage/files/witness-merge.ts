import { appendFileSync, createReadStream, mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type CaseRef, HoldfastError, isJsonObject } from '../../core/index.js';

/** What was seen committed of one case: at least this epoch, and this entry in its chain. */
export interface Seen {
  readonly ref: CaseRef;
  readonly epoch: number;
  readonly seq: number;
  readonly hash: string;
  /** The receipt (JWS) that proves the epoch, where one was issued or verified here. */
  readonly receipt?: string;
}

const MAX_PARTS = 512;
/** What is gathered for one part before it is written. */
const PIECE_CHARS = 16 * 1024;
/** Cases that are handed on together. */
const BATCH = 64;

/**
 * Every case of the journals once, as last seen, some at a time. However many there are, only a part of them is in memory: lines are
 * dealt out by case into files of about `partBytes` first.
 */
export async function* mergeSeen(
  paths: readonly string[],
  temp: string,
  partBytes: number,
): AsyncGenerator<Seen[]> {
  const bytes = paths.reduce((sum, path) => sum + statSync(path).size, 0);
  const parts = Math.min(MAX_PARTS, Math.ceil(bytes / partBytes));
  if (parts <= 1) {
    yield* batchesOf(await newestOf(paths));
    return;
  }
  const dir = mkdtempSync(join(temp, 'merge-'));
  try {
    for (const part of await deal(paths, dir, parts)) yield* batchesOf(await newestOf([part]));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function* batchesOf(cases: ReadonlyMap<string, Seen>): Generator<Seen[]> {
  const all = [...cases.values()];
  for (let from = 0; from < all.length; from += BATCH) yield all.slice(from, from + BATCH);
}

async function newestOf(paths: readonly string[]): Promise<ReadonlyMap<string, Seen>> {
  const newest = new Map<string, Seen>();
  for (const path of paths) {
    for await (const line of linesOf(path)) {
      const seen = parse(line, path);
      const key = keyOf(seen);
      newest.set(key, newer(newest.get(key), seen));
    }
  }
  return newest;
}

/** By epoch first: what a person has recovered goes on from a higher one, on a chain that may be shorter. */
function newer(before: Seen | undefined, seen: Seen): Seen {
  if (before === undefined) return seen;
  const [older, newest] =
    seen.epoch > before.epoch || (seen.epoch === before.epoch && seen.seq >= before.seq)
      ? [before, seen]
      : [seen, before];
  const proved = newest.receipt === undefined && older.receipt !== undefined && older.epoch === newest.epoch;
  return proved ? { ...newest, receipt: older.receipt } : newest;
}

async function deal(paths: readonly string[], dir: string, parts: number): Promise<string[]> {
  const pieces = new Array<string>(parts).fill('');
  const files = pieces.map((_, part) => join(dir, String(part)));
  const put = (part: number): void => {
    appendFileSync(files[part] as string, pieces[part] as string, { mode: 0o600 });
    pieces[part] = '';
  };
  for (const path of paths) {
    for await (const line of linesOf(path)) {
      const part = spread(keyOf(parse(line, path))) % parts;
      pieces[part] += `${line}\n`;
      if ((pieces[part] as string).length >= PIECE_CHARS) put(part);
    }
  }
  for (let part = 0; part < parts; part++) put(part);
  return files;
}

/** Whole lines only: one that a crash cut off was never said to be seen. */
async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of createReadStream(path, { encoding: 'utf8', highWaterMark: 256 * 1024 })) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

function parse(line: string, path: string): Seen {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    value = null;
  }
  const { tenant, root, case_id, epoch, seq, hash, receipt } = isJsonObject(value) ? value : {};
  if (
    typeof tenant !== 'string' ||
    typeof root !== 'string' ||
    typeof case_id !== 'string' ||
    typeof epoch !== 'number' ||
    typeof seq !== 'number' ||
    typeof hash !== 'string' ||
    !(receipt === undefined || typeof receipt === 'string')
  ) {
    throw new HoldfastError('config_invalid', `The journal ${path} is damaged.`);
  }
  const seen = { ref: { tenant, root, caseId: case_id }, epoch, seq, hash };
  return receipt === undefined ? seen : { ...seen, receipt };
}

function keyOf({ ref }: Seen): string {
  return `${ref.tenant}\n${ref.root}\n${ref.caseId}`;
}

/** FNV-1a: only has to spread. */
function spread(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash;
}
