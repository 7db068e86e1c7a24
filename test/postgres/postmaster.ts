import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { asServerUser, nativeFolder } from './native.js';
import { scratchFolder } from './scratch.js';

const START_MS = 30_000;
const STOP_MS = 20_000;
const LOG_MAX = 64 * 1024;
const READY = /ready to accept (read-only )?connections/;

export interface Postmaster {
  /** The end of what it has logged. */
  log(): string;
  /** Sends the signal, and waits until no process of the server is left; one that does not end in time is killed. */
  end(signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void>;
}

/** Starts the server of a cluster, and waits until it takes connections. */
export async function startPostmaster(
  dataDir: string,
  settings: Readonly<Record<string, string>>,
): Promise<Postmaster> {
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const postgres = join(nativeFolder(scratchFolder()), 'bin/postgres');
  const [program, args] = asServerUser(postgres, '-D', dataDir, ...flags);
  const child = spawn(program, args, { cwd: dataDir, stdio: ['ignore', 'ignore', 'pipe'] });

  let log = '';
  let isReady = false;
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const started = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      log += error.message;
      resolve();
    });
    child.once('close', () => resolve());
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-LOG_MAX);
      isReady ||= READY.test(log);
      if (isReady) resolve();
    });
  });

  const end: Postmaster['end'] = async (signal) => {
    const family = [child.pid ?? 0, ...childrenOf(child.pid)];
    for (const pid of signal === 'SIGKILL' ? family : family.slice(0, 1)) send(pid, signal);
    const late = setTimeout(() => send(child.pid ?? 0, 'SIGKILL'), STOP_MS);
    await exited;
    clearTimeout(late);
    for (let tries = 0; family.some((pid) => existsSync(`/proc/${pid}`)); tries += 1) {
      if (tries > 200) throw new Error('Processes of the PostgreSQL server do not end.');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };

  const late = setTimeout(() => child.kill('SIGKILL'), START_MS);
  await started;
  clearTimeout(late);
  if (!isReady) {
    if (child.pid !== undefined) await end('SIGKILL');
    throw new Error(`PostgreSQL did not start:\n${log}`);
  }
  return { log: () => log, end };
}

function childrenOf(pid = 0): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
  } catch {
    return [];
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    if (pid > 0) process.kill(pid, signal);
  } catch {
    // It has ended by itself.
  }
}
