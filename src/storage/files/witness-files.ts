import {
  appendFileSync,
  closeSync,
  existsSync,
  fsync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { HoldfastError, newId } from '../../core/index.js';
import { hasCode, moveInto, openFolder, writeFileSafely } from './disk.js';
import { mergeSeen, type Seen } from './witness-merge.js';

export type { Seen };

/** The database that it was seen in. */
export interface SeenLedger {
  readonly incarnation: string;
  /** Of a PostgreSQL server: its identity, and the newest timeline seen. */
  readonly system?: string;
  readonly timeline?: number;
  /** Something was committed in it that only it remembers; where absent, it may be lost. */
  readonly used?: true;
}

/** Looks at some cases, each once and as last seen, and says which are still to be kept. */
export type Look = (cases: readonly Seen[]) => Promise<readonly Seen[]>;

export interface WitnessFiles {
  readonly dir: string;
  ledger(): SeenLedger | null;
  keepLedger(ledger: SeenLedger): Promise<void>;
  /** In the file, though not yet forced to the disk, when it resolves. @throws ledger_unavailable */
  append(seen: Seen): Promise<void>;
  /** All journals together, bytes and files. */
  size(): { readonly bytes: number; readonly files: number };
  /** Shows every case to `look`, in pieces; `rewrite` then keeps only what it says. @throws config_invalid where a journal is damaged */
  visit(look: Look, options: { readonly rewrite: boolean }): Promise<void>;
  /** Forces what was appended to the disk. */
  close(): void;
}

export interface WitnessOptions {
  /** Called once this much was appended since the last rewriting, so that a new one can be begun. */
  readonly onLarge?: () => void;
  /** Cases are merged in memory in parts of about this many bytes of journal. */
  readonly partBytes?: number;
}

const LEDGER_FILE = 'ledger.json';
const LIVE = '.jsonl';
const SEALED = '.sealed';
const SYNC_EVERY_MS = 1000;
const LARGE_BYTES = 64 * 1024 * 1024;
/** Enough that a part with all its objects stays far below 100 MB. */
const PART_BYTES = 2 * 1024 * 1024;
/** A journal can be sealed, or be gone because another process has merged it, while one looks. */
const MAX_TRIES = 5;

/**
 * A folder of journals, one per process, one JSON line per thing seen. Nothing is locked: a journal is sealed by renaming it, its
 * writer notices and says again what may have come too late, and merging twice changes nothing. A line that a crash cut off is
 * left out; anything else that is no line is damage.
 */
export function openWitnessFiles(dir: string, options: WitnessOptions = {}): WitnessFiles {
  const { temp } = openFolder(dir);
  const { onLarge, partBytes = PART_BYTES } = options;
  let journal: { readonly fd: number; readonly path: string } | null = null;
  let lines: string[] = [];
  let flush: Promise<void> | null = null;
  let syncing: NodeJS.Timeout | null = null;
  let appended = 0;

  const named = (...endings: string[]) =>
    readdirSync(dir)
      .filter((name) => endings.some((ending) => name.endsWith(ending)))
      .map((name) => join(dir, name));

  function leave(): void {
    if (journal !== null) closeSync(journal.fd);
    journal = null;
  }

  function write(text: string): void {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      if (journal === null) {
        const path = join(dir, `${newId('seen')}${LIVE}`);
        journal = { fd: openSync(path, 'ax', 0o600), path };
      }
      appendFileSync(journal.fd, text);
      if (existsSync(journal.path)) return;
      // Sealed meanwhile, and perhaps read before this was in it.
      leave();
    }
    throw new Error('the journal is sealed again and again');
  }

  function writeLines(): void {
    const text = lines.join('');
    lines = [];
    flush = null;
    try {
      write(text);
    } catch (cause) {
      // Half a line may stand there now, and nothing may be put behind it.
      leave();
      throw new HoldfastError('ledger_unavailable', `Nothing can be written to ${dir}.`, { cause });
    }
    appended += text.length;
    if (appended >= LARGE_BYTES) {
      appended = 0;
      onLarge?.();
    }
    syncing ??= setTimeout(() => {
      syncing = null;
      // On failure the lines are where any plain append is; the next start reads what is there.
      if (journal !== null) fsync(journal.fd, () => undefined);
    }, SYNC_EVERY_MS).unref();
  }

  async function visitOnce(look: Look, rewrite: boolean): Promise<void> {
    if (!rewrite) {
      for await (const cases of mergeSeen(named(LIVE, SEALED), temp, partBytes)) await look(cases);
      return;
    }
    leave();
    for (const path of named(LIVE)) renameSync(path, path.replace(/\.jsonl$/, SEALED));
    const inputs = named(SEALED);
    if (inputs.length === 0) return;
    await writeFileSafely(
      temp,
      async (file) => {
        let bytes = 0;
        for await (const cases of mergeSeen(inputs, temp, partBytes)) {
          const text = (await look(cases)).map(lineOf).join('');
          bytes += text.length;
          await file.appendFile(text);
        }
        return bytes;
      },
      async (path, bytes) => {
        if (bytes > 0) await moveInto(path, join(dir, `${newId('seen')}${SEALED}`));
      },
    );
    for (const path of inputs) rmSync(path, { force: true });
  }

  return {
    dir,
    ledger() {
      const file = join(dir, LEDGER_FILE);
      try {
        return JSON.parse(readFileSync(file, 'utf8'));
      } catch (cause) {
        if (hasCode(cause, 'ENOENT')) return null;
        throw new HoldfastError('config_invalid', `${file} cannot be read.`, { cause });
      }
    },
    async keepLedger(ledger) {
      await writeFileSafely(
        temp,
        (file) => file.writeFile(`${JSON.stringify(ledger)}\n`),
        (path) => moveInto(path, join(dir, LEDGER_FILE)),
      );
    },
    append(seen) {
      lines.push(lineOf(seen));
      // What is seen in one turn of the event loop shares one write.
      flush ??= new Promise((resolve, reject) => {
        setImmediate(() => {
          try {
            writeLines();
            resolve();
          } catch (error) {
            reject(error);
          }
        });
      });
      return flush;
    },
    size() {
      const sizes = named(LIVE, SEALED).map((path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0);
      return { bytes: sizes.reduce((sum, size) => sum + size, 0), files: sizes.length };
    },
    async visit(look, { rewrite }) {
      for (let tries = 1; ; tries++) {
        try {
          return await visitOnce(look, rewrite);
        } catch (error) {
          if (!hasCode(error, 'ENOENT') || tries === MAX_TRIES) throw error;
        }
      }
    },
    close() {
      if (syncing !== null) clearTimeout(syncing);
      if (lines.length > 0) writeLines();
      if (syncing !== null) clearTimeout(syncing);
      if (journal !== null) fsyncSync(journal.fd);
      leave();
    },
  };
}

function lineOf({ ref, epoch, seq, hash, receipt }: Seen): string {
  const { tenant, root, caseId } = ref;
  return `${JSON.stringify({ tenant, root, case_id: caseId, epoch, seq, hash, receipt })}\n`;
}
