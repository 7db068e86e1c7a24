import { setTimeout as sleep } from 'node:timers/promises';
import type { CaseRef } from '../../../src/core/index.js';
import type { CaseSnapshot, LedgerStore } from '../../../src/ledger/index.js';
import { isPersons, objectionsTo, type Side } from './observer.js';

/** Between two looks, milliseconds; the longer a case is watched, the longer until the next look at it. */
const PAUSE_MS = 25;
const SLOWER = 1.1;
const SLOWEST_MS = 600;

interface Watched {
  /** The driver has nothing more to do with it: once it is settled, it is no longer watched. */
  finished: boolean;
  /** When it is to be looked at, and how long after the next time. */
  dueAt: number;
  waitMs: number;
  readonly earlier: Map<string, CaseSnapshot>;
  readonly problems: Set<string>;
}

/** One of two ledgers, and the agent it belongs to. */
export interface Seat {
  readonly agent: string;
  readonly ledger: Pick<LedgerStore, 'snapshot'>;
}

/** Looks at the cases in both ledgers, one after the other and in either order, as long as something may happen to them. */
export class Watch {
  readonly #cases = new Map<string, Watched>();
  readonly #seats: readonly [Seat, Seat];
  readonly #decliner: Seat;
  readonly #onChange: (caseIds: readonly string[]) => void;
  #running: Promise<void> | null = null;
  #stopped = false;
  looks = 0;
  readonly violations: string[] = [];

  constructor(seats: readonly [Seat, Seat], decliner: Seat, onChange: (caseIds: readonly string[]) => void) {
    this.#seats = seats;
    this.#decliner = decliner;
    this.#onChange = onChange;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  /** From now on; the agents are told, too. */
  add(caseId: string): void {
    if (this.#cases.has(caseId)) return;
    this.#cases.set(caseId, {
      finished: false,
      dueAt: 0,
      waitMs: PAUSE_MS,
      earlier: new Map(),
      problems: new Set(),
    });
    this.#onChange(this.cases);
  }

  finish(caseId: string): void {
    const watched = this.#cases.get(caseId);
    if (watched) watched.finished = true;
  }

  get cases(): string[] {
    return [...this.#cases.keys()];
  }

  async #run(): Promise<void> {
    for (let turn = 0; !this.#stopped; turn++) {
      for (const [caseId, watched] of this.#cases) {
        if (watched.dueAt > performance.now()) continue;
        await this.#look(caseId, watched, turn);
        watched.waitMs = Math.min(SLOWEST_MS, watched.waitMs * SLOWER);
        watched.dueAt = performance.now() + watched.waitMs;
      }
      await sleep(PAUSE_MS);
    }
  }

  async #look(caseId: string, watched: Watched, turn: number): Promise<void> {
    const [first, other] = turn % 2 === 0 ? this.#seats : [this.#seats[1], this.#seats[0]];
    const ref = this.#ref(caseId);
    const seen = await first.ledger.snapshot(ref);
    const there = await other.ledger.snapshot(ref);
    const again = await first.ledger.snapshot(ref);
    const { agent, ledger } = this.#decliner;
    const isOffered = [seen, there, again].some(({ offers }) => offers.some((one) => one.toAgent === agent));
    const look = {
      first: { agent: first.agent, seen },
      other: { agent: other.agent, seen: there },
      again,
      ...(isOffered ? { decliner: { agent, seen: await ledger.snapshot(ref) } } : {}),
    };
    this.looks += 1;
    for (const problem of objectionsTo(look, watched.earlier)) watched.problems.add(problem);
    watched.earlier.set(first.agent, again).set(other.agent, there);
    if (look.decliner) watched.earlier.set(agent, look.decliner.seen);
    if (!watched.finished || !isSettled({ ...look.first, seen: again }, look.other)) return;
    this.#cases.delete(caseId);
    this.#onChange(this.cases);
    for (const problem of watched.problems) this.violations.push(`${caseId}: ${problem}`);
  }

  /** What is not finished by then; the problems of those are known, too. */
  unsettled(): string[] {
    for (const [caseId, { problems }] of this.#cases) {
      for (const problem of problems) this.violations.push(`${caseId}: ${problem}`);
    }
    return this.cases;
  }

  #ref(caseId: string): CaseRef {
    return { tenant: 'default', root: this.#seats[0].agent, caseId };
  }
}

function isSettled(one: Side, other: Side): boolean {
  const [here, there] = [one.seen.case, other.seen.case];
  // What a person has got from their own agent, nobody else is told.
  const agree = here === null || there === null || here.epoch === there.epoch || [one, other].some(isPersons);
  const idle = [one.seen, other.seen].every(
    ({ offers, work, effects, pending, plan }) =>
      offers.every(({ closedAt }) => closedAt !== null) &&
      work.every(({ state }) => state !== 'open') &&
      effects.every(({ state }) => state !== 'started') &&
      pending.every(({ state }) => state === 'decided') &&
      plan?.state !== 'active',
  );
  return agree && idle;
}
