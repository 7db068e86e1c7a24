import type { ChildProcess } from 'node:child_process';
import { run } from './programs.js';

/** What the nodes of one run have said, over all their lives. */
export interface Told {
  /** Cases whose acceptance a sender was told of; with a ledger each, case and epoch. */
  readonly accepted: Set<string>;
  readonly outcomes: Map<string, number>;
  readonly violations: string[];
}

export function nothingTold(): Told {
  return { accepted: new Set(), outcomes: new Map(), violations: [] };
}

/** How a case is to be handed over. */
export interface How {
  /** Delivers the decided offer once more. */
  readonly repeat?: boolean;
  /** Takes the offer back when it has been sent; with a ledger each so many milliseconds after it was stored, whatever has come of it. */
  readonly withdraw?: boolean | number;
  readonly acceptWithinMs?: number;
}

type Order =
  | { readonly arm: string }
  | { readonly hand: string; readonly how?: How }
  | { readonly load: number }
  /** The cases on which it is to try to act all the time. */
  | { readonly probe: readonly string[] }
  | { readonly stop: true };

/** One agent's process, which dies and is started again. */
export class Node {
  #child: ChildProcess | null = null;
  #gone: Promise<void> = Promise.resolve();
  #waiting = new Map<string, (outcome: string) => void>();

  constructor(
    readonly role: 'triage' | 'billing' | 'second',
    private readonly args: readonly string[],
    private readonly told: Told,
    private readonly program: 'agent' | 'organisation' = 'agent',
  ) {}

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get alive(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The signal that ended the process. */
  get killedBy(): NodeJS.Signals | null {
    return this.#child?.signalCode ?? null;
  }

  /** Resolves when the process has ended, whatever ended it. */
  get gone(): Promise<void> {
    return this.#gone;
  }

  /** Starts the process and waits until it listens; false where it has ended before. */
  async start(faults = 'count'): Promise<boolean> {
    const child = run(this.program, [this.role, ...this.args], faults);
    this.#child = child;
    this.#gone = new Promise((resolve) => child.once('exit', () => resolve()));
    const ready = new Promise<true>((resolve) => {
      child.on('message', (message) => {
        if ((message as { ready?: boolean }).ready) resolve(true);
        else this.#hear(message as Record<string, string>);
      });
    });
    return Promise.race([ready, this.#gone.then(() => false as const)]);
  }

  order(order: Order): void {
    if (this.alive) this.#child?.send(order, () => undefined);
  }

  /** Resolves when the handover has an outcome, of whatever kind, or the process has ended; `null` then. */
  async handOver(caseId: string, how: How = {}): Promise<string | null> {
    const told = new Promise<string>((resolve) => this.#waiting.set(caseId, resolve));
    this.order({ hand: caseId, how });
    const outcome = await Promise.race([told, this.#gone.then(() => null)]);
    this.#waiting.delete(caseId);
    return outcome;
  }

  async kill(): Promise<void> {
    if (this.alive) this.#child?.kill('SIGKILL');
    await this.#gone;
  }

  /** Asks for an orderly end, and insists when none comes. */
  async stop(): Promise<void> {
    if (!this.alive) return;
    this.order({ stop: true });
    const late = setTimeout(() => this.#child?.kill('SIGKILL'), 20_000);
    await this.#gone;
    clearTimeout(late);
  }

  #hear(message: Record<string, string>): void {
    const { caseId = '', violation, state, code, refused, epoch } = message;
    if (violation) this.told.violations.push(`${caseId}: ${violation}`);
    if (state === 'accepted') this.told.accepted.add(epoch ? `${caseId} ${epoch}` : caseId);
    const outcome = state ? [state, code].filter(Boolean).join(' ') : refused;
    if (!outcome) return;
    this.told.outcomes.set(outcome, (this.told.outcomes.get(outcome) ?? 0) + 1);
    this.#waiting.get(caseId)?.(outcome);
  }
}
