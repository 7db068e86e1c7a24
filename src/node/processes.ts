import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';

/** What a process of the agent leaves in the agent's folder for as long as it runs. */
interface Entry {
  readonly holder: string;
  readonly pid: number;
  /** When it started, in the kernel's count: a pid is used again. */
  readonly started: string;
  /** The host, its boot and its namespace of pids: only there does the pid mean this process. */
  readonly machine: string;
}

/**
 * The processes of one agent on this machine. A lease says that its process may live; this says which surely do not, so that a restart
 * after a crash need not wait until the lease of the one that died runs out.
 */
export class Processes {
  readonly #folder: string;

  constructor(dir: string) {
    this.#folder = join(dir, 'run');
  }

  /** Enters this process under the name of its lease; the result takes it out again. */
  enter(holder: string): () => void {
    const machine = thisMachine();
    const started = startOf(process.pid);
    if (machine === null || started === null) return () => undefined;
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const file = join(this.#folder, `${process.pid}-${holder.slice(holder.lastIndexOf('#') + 1)}.json`);
    const entry: Entry = { holder, pid: process.pid, started, machine };
    writeFileSync(`${file}.new`, JSON.stringify(entry), { mode: 0o600 });
    renameSync(`${file}.new`, file);
    return () => rmSync(file, { force: true });
  }

  /** Whether the process of this lease runs on this machine. */
  runs(holder: string): boolean {
    const machine = thisMachine();
    return this.#names().some((name) => {
      const entry = read(join(this.#folder, name));
      return entry?.holder === holder && entry.machine === machine && startOf(entry.pid) === entry.started;
    });
  }

  /** Calls `release` for the lease of each process of this machine that is gone, then forgets the process. */
  async bury(release: (holder: string) => Promise<void>): Promise<void> {
    const machine = thisMachine();
    if (machine === null) return;
    for (const name of this.#names()) {
      const file = join(this.#folder, name);
      const entry = read(file);
      if (entry !== null && (entry.machine !== machine || startOf(entry.pid) === entry.started)) continue;
      if (entry !== null) await release(entry.holder);
      rmSync(file, { force: true });
    }
  }

  #names(): string[] {
    try {
      return readdirSync(this.#folder).filter((name) => name.endsWith('.json'));
    } catch {
      return [];
    }
  }
}

/** `null` for what is no entry. */
function read(file: string): Entry | null {
  try {
    const entry = JSON.parse(readFileSync(file, 'utf8')) as Partial<Entry>;
    const { holder, pid, started, machine } = entry;
    return typeof holder === 'string' &&
      typeof pid === 'number' &&
      typeof started === 'string' &&
      typeof machine === 'string'
      ? { holder, pid, started, machine }
      : null;
  } catch {
    return null;
  }
}

/** `null` where the system does not say; then leases have to run out. */
function thisMachine(): string | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${hostname()} ${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return null;
  }
}

/** `null` where there is no such process, or only what is left of it until its parent has asked how it ended. */
function startOf(pid: number): string | null {
  try {
    // After the name, which may hold spaces and brackets: the state is the first field, the start the twentieth.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}
