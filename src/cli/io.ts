/** Where a command writes, and what it may know of its surroundings; tests bring their own. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether stdout takes colour. */
  readonly color: boolean;
  /** Whether a person at a terminal can press Ctrl-C. */
  readonly interactive?: boolean;
  /** Resolves when the process is asked to end. */
  untilStopped(): Promise<void>;
}

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

// `holdfast audit export | head` ends the reader first, a closed terminal both streams (EIO); neither is a failure of ours.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
  });
}

export const processIo: Io = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  env: process.env,
  color: process.stdout.isTTY === true && !process.env.NO_COLOR,
  interactive: process.stdin.isTTY === true && process.stderr.isTTY === true,
  untilStopped: () =>
    new Promise((resolve) => {
      const stop = () => {
        // A second signal ends the process at once, whatever it still waits for.
        for (const signal of STOP_SIGNALS) process.removeListener(signal, stop);
        resolve();
      };
      for (const signal of STOP_SIGNALS) process.on(signal, stop);
    }),
};
