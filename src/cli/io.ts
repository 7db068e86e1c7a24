/** Where a command writes, and what it may know of its surroundings; tests bring their own. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether stdout takes colour. */
  readonly color: boolean;
  /** Resolves when the process is asked to end. */
  untilStopped(): Promise<void>;
}

// `holdfast audit export | head` ends the reader first; that is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

export const processIo: Io = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  env: process.env,
  color: process.stdout.isTTY === true && !process.env.NO_COLOR,
  untilStopped: () =>
    new Promise((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
    }),
};
