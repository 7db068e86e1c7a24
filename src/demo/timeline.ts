import type { Outcome } from './expectation.js';
import type { LedgerName, Owner, Position, Standing } from './standing.js';

const COLOURS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;
type Colour = keyof typeof COLOURS;

const OWNER_COLOUR = {
  triage: 'yellow',
  billing: 'cyan',
  billing2: 'blue',
  human: 'green',
} as const satisfies Record<Owner, Colour>;
const TEXT_WIDTH = 74;
const LEDGER_WIDTH = 18;

/** What a person reads: one line for each step, with the owner and epoch that each ledger held at that moment. */
export class Timeline {
  readonly #write: (text: string) => void;
  readonly #color: boolean;
  #ledgers: readonly LedgerName[] = [];

  constructor(write: (text: string) => void, color: boolean) {
    this.#write = write;
    this.#color = color;
  }

  title(text: string, subtitle: string): void {
    this.plain(`\n${this.#paint(text, 'bold')}\n${this.#paint(subtitle, 'dim')}\n`);
  }

  /** What stands above the lines: a column for each ledger. */
  heading(ledgers: readonly LedgerName[]): void {
    this.#ledgers = ledgers;
    const columns = ledgers.map((name) => (name === 'shared' ? 'owner@epoch' : `${name}'s ledger`));
    const shown = columns
      .map((column) => column.padEnd(LEDGER_WIDTH))
      .join('')
      .trimEnd();
    this.plain(this.#paint(`  step  ${'what happens'.padEnd(TEXT_WIDTH)}  ${shown}`, 'dim'));
  }

  line(step: string, text: string, standing: Standing): void {
    const [first = '', ...more] = wrap(text, TEXT_WIDTH);
    const marks = this.#ledgers.map((name, at) => {
      const position = standing.ledgers.find(({ ledger }) => ledger === name);
      return this.#mark(position, at === this.#ledgers.length - 1);
    });
    this.plain(`  ${step.padStart(4)}  ${first.padEnd(TEXT_WIDTH)}  ${marks.join('')}`);
    for (const rest of more) this.plain(`        ${rest}`);
  }

  outcome({ ok, state, audit, leaks, observed, problems }: Outcome): void {
    const verdict = ok ? this.#paint('as written down', 'green') : this.#paint('NOT as written down', 'red');
    const effects = state.attempts.map(
      ({ operation, amount, outcome }) => `${operation} ${amount ?? ''} ${outcome}`,
    );
    this.plain(`\n  ${verdict}: ${state.owner} owns the case at epoch ${state.epoch}`);
    this.plain(`  effects attempted: ${effects.length === 0 ? 'none' : effects.join(', ')}`);
    this.plain(
      `  audit: ${audit.entries} entries, ${audit.verified ? 'verified' : this.#paint('BROKEN', 'red')}`,
    );
    this.plain(
      `  looked ${observed.instants} times at who can act: ${observed.overlaps.length === 0 ? 'never two' : this.#paint('TWO', 'red')}`,
    );
    this.plain(`  leaks into wire, logs, audit or files: ${leaks.length}`);
    for (const problem of problems) this.plain(`    ${this.#paint(problem, 'red')}`);
  }

  plain(text: string): void {
    this.#write(`${text}\n`);
  }

  #mark(position: Position | undefined, isLast: boolean): string {
    const { owner, epoch, held } = position ?? { owner: null, epoch: 0, held: false };
    const text = owner === null ? '-' : `${owner}@${epoch}${held ? ' held' : ''}`;
    const padded = isLast ? text : text.padEnd(LEDGER_WIDTH);
    return owner === null ? padded : this.#paint(padded, OWNER_COLOUR[owner]);
  }

  #paint(text: string, colour: Colour): string {
    return this.#color ? `\u001b[${COLOURS[colour]}m${text}\u001b[0m` : text;
  }
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
