/** One effect as it reaches the target: under which key, by whom, and at which epoch of the case. */
export interface Act {
  readonly caseId: string;
  /** Unique on the case. */
  readonly key: string;
  readonly agent: string;
  readonly epoch: number;
  /** From then on its agent's ledger may count it as unknown, and let the case go; milliseconds of the target's clock. */
  readonly until: number;
}

interface Window extends Act {
  open: boolean;
}

/**
 * What an effect target can tell of who acts on a case. An effect is going on from when the target admits it until it has answered, or
 * somebody was told that it happened, or its limit has passed: as long, its agent's ledger holds it as `started`, and neither offers the
 * case nor learns that it is another's. So whatever is objected to here is no matter of clocks, or of who was seen first.
 */
export class Acts {
  readonly #windows = new Map<string, Window[]>();
  readonly problems: string[] = [];
  admitted = 0;

  /** The target carries it out. The answer is called when it is over. */
  admit(act: Act, now: number): () => void {
    this.admitted += 1;
    const before = this.#windows.get(act.caseId) ?? [];
    for (const problem of objections(act, before, now)) {
      this.problems.push(`${act.caseId}: ${act.key} of ${act.agent} at epoch ${act.epoch} ${problem}`);
    }
    const window: Window = { ...act, open: true };
    this.#windows.set(act.caseId, [...before, window]);
    return () => {
      window.open = false;
    };
  }

  /** Somebody was told that it happened, and may write that down. */
  told(caseId: string, key: string): void {
    for (const window of this.#windows.get(caseId) ?? []) if (window.key === key) window.open = false;
  }

  /** In the order in which they were admitted. */
  of(caseId: string): readonly Act[] {
    return this.#windows.get(caseId) ?? [];
  }

  cases(): string[] {
    return [...this.#windows.keys()];
  }
}

function* objections(act: Act, before: readonly Window[], now: number): Generator<string> {
  if (before.some(({ key }) => key === act.key)) yield 'is admitted a second time';
  const beside = before.find((one) => one.agent !== act.agent && one.open && now < one.until);
  if (beside) yield `is admitted while ${beside.key} of ${beside.agent} is going on`;
  const highest = Math.max(0, ...before.map(({ epoch }) => epoch));
  if (act.epoch < highest) yield `comes after one of epoch ${highest}`;
  const other = before.find((one) => one.epoch === act.epoch && one.agent !== act.agent);
  if (other) yield `shares its epoch with ${other.key} of ${other.agent}`;
}
