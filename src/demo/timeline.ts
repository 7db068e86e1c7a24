import type { Outcome, Role } from './expectation.js';

const COLOURS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
type Colour = keyof typeof COLOURS;

const OWNER_COLOUR = { triage: 'yellow', billing: 'cyan' } as const satisfies Record<Role, Colour>;
const TEXT_WIDTH = 74;

/** What a person reads: one line for each step, with the owner and epoch that the ledger held at that moment. */
export class Timeline {
  readonly #write: (text: string) => void;
  readonly #color: boolean;

  constructor(write: (text: string) => void, color: boolean) {
    this.#write = write;
    this.#color = color;
  }

  title(text: string, subtitle: string): void {
    this.plain(`\n${this.#paint(text, 'bold')}\n${this.#paint(subtitle, 'dim')}\n`);
    this.plain(this.#paint(`  step  ${'what happens'.padEnd(TEXT_WIDTH)}  owner@epoch`, 'dim'));
  }

  line(step: string, text: string, owner: Role, epoch: number): void {
    const [first = '', ...more] = wrap(text, TEXT_WIDTH);
    const mark = this.#paint(`${owner}@${epoch}`, OWNER_COLOUR[owner]);
    this.plain(`  ${step.padStart(4)}  ${first.padEnd(TEXT_WIDTH)}  ${mark}`);
    for (const rest of more) this.plain(`        ${rest}`);
  }

  outcome({ ok, state, audit, leaks, problems }: Outcome): void {
    const verdict = ok ? this.#paint('as written down', 'green') : this.#paint('NOT as written down', 'red');
    const effects = state.attempts.map(
      ({ operation, amount, outcome }) => `${operation} ${amount ?? ''} ${outcome}`,
    );
    this.plain(`\n  ${verdict}: ${state.owner} owns the case at epoch ${state.epoch}`);
    this.plain(`  effects attempted: ${effects.length === 0 ? 'none' : effects.join(', ')}`);
    this.plain(
      `  audit: ${audit.entries} entries, ${audit.verified ? 'verified' : this.#paint('BROKEN', 'red')}`,
    );
    this.plain(`  leaks into wire, logs, audit or files: ${leaks.length}`);
    for (const problem of problems) this.plain(`    ${this.#paint(problem, 'red')}`);
  }

  plain(text: string): void {
    this.#write(`${text}\n`);
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
