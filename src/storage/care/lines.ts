import { closeSync, createReadStream, openSync, readSync } from 'node:fs';
import { createGunzip } from 'node:zlib';

const NEWLINE = 10;
/** Above any row: an envelope and its task are bounded by the configuration, far below. */
const MAX_LINE_BYTES = 256 * 1024 * 1024;

/** The lines of a file, compressed or not, without their ends; one without an end is the last of a file that was cut. */
export async function* readLines(file: string): AsyncGenerator<{ bytes: Buffer; whole: boolean }> {
  const isCompressed = isGzip(file);
  const raw = createReadStream(file);
  const source = isCompressed ? raw.compose<NodeJS.ReadWriteStream>(createGunzip()) : raw;
  let parts: Buffer[] = [];
  let held = 0;
  for await (const chunk of source as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      yield { bytes: Buffer.concat([...parts, chunk.subarray(from, end)]), whole: true };
      parts = [];
      held = 0;
      from = end + 1;
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
    held += chunk.length - from;
    if (held > MAX_LINE_BYTES) throw new RangeError('a line is too long');
  }
  if (held > 0) yield { bytes: Buffer.concat(parts), whole: false };
}

function isGzip(file: string): boolean {
  const handle = openSync(file, 'r');
  try {
    const magic = Buffer.alloc(2);
    readSync(handle, magic);
    return magic[0] === 0x1f && magic[1] === 0x8b;
  } finally {
    closeSync(handle);
  }
}
