import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

export interface Child {
  readonly pid: number;
  /** What stood in its first line of output, which says that it is ready. */
  readonly ready: string;
  stop(): Promise<void>;
}

/** Processor time that a process has used so far, milliseconds; `null` where the system does not tell. */
export function cpuMsOf(pid: number): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
    // User and system time, in hundredths of a second on every Linux.
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return null;
  }
}

/** Memory of a process that is in use now, MiB; `null` where the system does not tell. */
export function memoryMbOf(pid: number): number | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
  } catch {
    return null;
  }
}

const running = new Set<ChildProcess>();
// Whatever ends this process ends what it started.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

/** Starts a process and waits for the first line that `isReady` takes. @throws with its output when none comes in time */
export async function startChild(
  command: string,
  args: readonly string[],
  options: {
    readonly env?: Readonly<Record<string, string>>;
    readonly cwd?: string;
    readonly timeoutMs?: number;
    /** False where it says nothing, and is asked instead. */
    readonly needsLine?: boolean;
    isReady?(line: string): boolean;
  } = {},
): Promise<Child> {
  const { timeoutMs = 30_000, needsLine = true, isReady = () => true } = options;
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  running.add(child);
  const ended = once(child, 'exit').catch(() => undefined);
  child.once('exit', () => running.delete(child));
  if (!needsLine) for (const stream of [child.stdout, child.stderr]) stream?.resume();
  const ready = needsLine ? await firstLine(child, isReady, timeoutMs) : '';
  return {
    pid: child.pid ?? 0,
    ready,
    async stop() {
      child.kill('SIGTERM');
      const limit = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(limit);
    },
  };
}

function firstLine(
  child: ChildProcess,
  isReady: (line: string) => boolean,
  timeoutMs: number,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const fail = (why: string) => {
      child.kill('SIGKILL');
      reject(
        new Error(`${child.spawnfile} ${child.spawnargs.slice(1).join(' ')} ${why}\n${text.slice(-2000)}`),
      );
    };
    const limit = setTimeout(() => fail('was not ready in time'), timeoutMs);
    const read = (bytes: Buffer) => {
      text = `${text}${bytes}`.slice(-20_000);
      const line = text.split('\n').slice(0, -1).find(isReady);
      if (line === undefined) return;
      clearTimeout(limit);
      child.off('exit', exited);
      child.off('error', exited);
      child.stdout?.off('data', read).resume();
      child.stderr?.off('data', read).resume();
      resolve(line);
    };
    const exited = () => {
      clearTimeout(limit);
      fail('ended');
    };
    child.once('exit', exited);
    child.once('error', exited);
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
  });
}
