import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type ErrorCode, HoldfastError } from '../core/index.js';
import type { AgentSetup, CommandInput, CommandName, CommandOutput, Reply, Request } from './commands.js';

/** Compiled, as this file is: the demo runs from `dist/`, where a process starts in half the time that it takes from the sources. */
const ENTRY = fileURLToPath(new URL('./agent.js', import.meta.url));

/** Long enough for a handover on a busy machine, short enough that a hung agent fails the run. */
const COMMAND_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 5_000;

interface Pending {
  readonly resolve: (output: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** One agent in its own process, seen from the orchestrator. */
export class AgentProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #output: Buffer[] = [];
  readonly #exited: Promise<void>;
  #nextId = 1;

  /** @param faults fault points at which the process dies, as `HOLDFAST_FAULTS` names them */
  constructor(name: string, faults?: string) {
    this.name = name;
    const { HOLDFAST_FAULTS: _, ...env } = process.env;
    this.#child = fork(ENTRY, [], {
      env: faults === undefined ? env : { ...env, HOLDFAST_FAULTS: faults },
      // Ctrl-C and a closed terminal reach the orchestrator alone, which then ends its agents in order.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk: Buffer) => this.#output.push(chunk));
    }
    this.#child.on('message', (reply: Reply) => this.#settle(reply));
    this.#exited = this.#untilGone();
    void this.#exited.then(() => this.#failAll());
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves when the process has ended, by itself or not. @throws internal when it does not in time */
  async died(): Promise<void> {
    const late = sleep(COMMAND_LIMIT_MS, 'late', { ref: false });
    if ((await Promise.race([this.#exited, late])) === 'late') {
      throw new HoldfastError('internal', `${this.name} is still running`);
    }
  }

  /** Lets it go on after it was stopped, as a fault does. */
  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** Ends it as a crash does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** Everything the process has written to stdout and stderr. */
  output(): Buffer {
    return Buffer.concat(this.#output);
  }

  /** @throws HoldfastError with the code, fields and data that the agent's process raised */
  call<N extends CommandName>(name: N, input: CommandInput<N>): Promise<CommandOutput<N>> {
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(new HoldfastError('internal', `${this.name} did not answer ${name} in time`));
      }, COMMAND_LIMIT_MS);
      this.#pending.set(id, { resolve: resolve as (output: unknown) => void, reject, timer });
      const request: Request = { id, name, input };
      this.#child.send(request, (error) => {
        if (error) this.#settle({ id, ok: false, error: { code: null, message: this.#lastWords() } });
      });
    });
  }

  start(setup: AgentSetup): Promise<{ port: number }> {
    return this.call('start', setup);
  }

  /** Asks it to stop, and ends it where it does not. Only ever this child. */
  async stop(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_LIMIT_MS);
    await this.#exited;
    clearTimeout(timer);
  }

  /** The process has ended and the last of its output was read. Its own `close` event stays away once we have disconnected. */
  async #untilGone(): Promise<void> {
    const streams = [this.#child.stdout, this.#child.stderr].flatMap((stream) =>
      stream ? [new Promise((resolve) => stream.once('close', resolve))] : [],
    );
    await new Promise<void>((resolve) => {
      this.#child.once('exit', () => resolve());
      this.#child.once('error', () => resolve());
    });
    await Promise.all(streams);
  }

  #settle(reply: Reply): void {
    const pending = this.#pending.get(reply.id);
    if (!pending) return;
    this.#pending.delete(reply.id);
    clearTimeout(pending.timer);
    if (reply.ok) pending.resolve(reply.output);
    else {
      const { code, message, ...details } = reply.error;
      pending.reject(
        code === null
          ? new Error(`${this.name}: ${message}`)
          : new HoldfastError(code as ErrorCode, message, details),
      );
    }
  }

  #failAll(): void {
    for (const id of [...this.#pending.keys()]) {
      this.#settle({ id, ok: false, error: { code: null, message: this.#lastWords() } });
    }
  }

  #lastWords(): string {
    return `the process has ended: ${this.output().toString('utf8').slice(-2_000)}`;
  }
}
