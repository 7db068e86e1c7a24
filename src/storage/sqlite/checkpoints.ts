import type { LedgerFile } from './ledger-file.js';
import { checkpoint, type WalState } from './wal.js';
import type { WriterThread } from './writer.js';

/** Hears of what an operator should look at; everything goes on meanwhile. */
export type OnWarning = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/** Looking at the log costs a twentieth of a commit, so it is not done after each. */
const COMMANDS_BETWEEN_LOOKS = 64;

/** Frames that are worth copying back, at 4 KiB each. */
const DUE_FRAMES = 1_024;

/** From here on the next transaction waits for the copying, since only a log that is copied whole is begun anew. */
const HOLD_FRAMES = 4 * DUE_FRAMES;

/** A log that grows to this size, bytes, and to each double of it, because it cannot be copied back is warned of. */
const WARN_BYTES = 32 * 1024 * 1024;

/** Keeps the write-ahead log short without making a commit wait for it: the thread copies, and what is written goes on meanwhile. */
export class Checkpoints {
  readonly #file: LedgerFile;
  readonly #thread: WriterThread;
  readonly #onWarning: OnWarning;
  #commands = 0;
  #running: Promise<void> | null = null;
  /** A reader that has the log open lets nothing be copied; then each attempt waits for as much again. */
  #dueAt = DUE_FRAMES;
  #warnAt = WARN_BYTES;

  constructor(file: LedgerFile, thread: WriterThread, onWarning: OnWarning) {
    this.#file = file;
    this.#thread = thread;
    this.#onWarning = onWarning;
  }

  /** To be called when that many commands have committed; resolves when the next may. */
  async after(commands: number): Promise<void> {
    this.#commands += commands;
    if (this.#commands < COMMANDS_BETWEEN_LOOKS) return;
    this.#commands = 0;
    try {
      const { frames, copied } = checkpoint(this.#file.use().db, 'NOOP');
      if (frames - copied < DUE_FRAMES || frames < this.#dueAt) return;
      this.#thread.start();
      this.#running ??= this.#copy()
        .catch((err: unknown) => this.#warn(err))
        .finally(() => {
          this.#running = null;
        });
      if (frames >= HOLD_FRAMES) await this.#running;
    } catch (err) {
      this.#warn(err);
    }
  }

  #warn(err: unknown): void {
    this.#onWarning({ err }, 'the write-ahead log of the ledger could not be copied back');
  }

  async #copy(): Promise<void> {
    const here = () => checkpoint(this.#file.use().db, 'PASSIVE');
    const state = this.#thread.ready ? await this.#thread.checkpoint() : here();
    if (state !== null) this.#judge(state);
  }

  #judge({ frames, copied }: WalState): void {
    if (copied === frames) {
      this.#dueAt = DUE_FRAMES;
      this.#warnAt = WARN_BYTES;
      return;
    }
    this.#dueAt = frames + DUE_FRAMES;
    const bytes = frames * (this.#file.use().db.pragma('page_size', { simple: true }) as number);
    if (bytes < this.#warnAt) return;
    while (this.#warnAt <= bytes) this.#warnAt *= 2;
    const waiting = frames - copied;
    this.#onWarning(
      { bytes, frames, waiting },
      'a long reader keeps the write-ahead log of the ledger growing',
    );
  }
}
