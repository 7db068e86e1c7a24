import { resolve } from 'node:path';
import type { Command } from 'commander';
import { HoldfastError, isHoldfastError } from '../core/index.js';
import { type Holdfast, openHoldfast } from '../node/index.js';
import { EXIT, type ExitCode, exitCodeOf } from './exit-codes.js';
import { hintOf } from './hints.js';
import type { Io } from './io.js';
import { oneLine } from './print.js';

/** What a command found: one JSON document for programs, text for people. */
export interface Result {
  readonly json: unknown;
  readonly text: string;
  readonly exit?: ExitCode;
}

export interface CommonOptions {
  readonly json?: boolean;
  readonly dir?: string;
}

/** What every command is given to work with. */
export class Session {
  exit: ExitCode = EXIT.ok;

  constructor(readonly io: Io) {}

  dirOf(options: CommonOptions): string {
    return resolve(options.dir ?? (this.io.env.HOLDFAST_DIR || '.'));
  }

  warn(message: string): void {
    this.io.err(`holdfast: warning: ${oneLine(message)}\n`);
  }

  /** Runs one command to its end and prints what it found or why it failed; never throws. */
  async finish(options: CommonOptions, work: () => Promise<Result | null>): Promise<void> {
    try {
      const result = await work();
      if (!result) return;
      this.exit = result.exit ?? EXIT.ok;
      this.io.out(options.json ? `${JSON.stringify(result.json)}\n` : `${result.text}\n`);
    } catch (error) {
      this.fail(error, options.json === true);
    }
  }

  /** The same, with the agent of `--dir` open meanwhile. */
  withAgent(options: CommonOptions, work: (holdfast: Holdfast) => Promise<Result | null>): Promise<void> {
    return this.finish(options, async () => {
      const holdfast = await openHoldfast({ dir: this.dirOf(options) });
      try {
        return await work(holdfast);
      } finally {
        await holdfast.close();
      }
    });
  }

  fail(error: unknown, json: boolean): void {
    const known = isHoldfastError(error)
      ? error
      : new HoldfastError('internal', `Holdfast failed internally: ${messageOf(error)}`, { cause: error });
    this.exit = exitCodeOf(known.code);
    if (json) {
      const { code, message, fields, data } = known;
      this.io.out(`${JSON.stringify({ error: { code, message, fields, data } })}\n`);
    }
    this.io.err(`holdfast: ${oneLine(sentenceOf(known))}\n`);
    if (this.io.env.HOLDFAST_DEBUG === '1') this.io.err(`${(known.cause as Error)?.stack ?? known.stack}\n`);
  }
}

/** The message with the fields that it does not already name. */
function sentenceOf(error: HoldfastError): string {
  const unnamed = error.fields.filter(({ path, problem }) => !error.message.includes(`${path} ${problem}`));
  const listed = unnamed
    .map(({ path, problem }) => (path === '' ? problem : `${path} ${problem}`))
    .join('; ');
  const what = listed === '' ? error.message : `${error.message.replace(/\.$/, '')}: ${listed}.`;
  const hint = hintOf(error);
  return `${asSentence(what)}${hint ? ` ${hint}` : ''} [${error.code}]`;
}

function asSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A command that does something, with the options all of them have. */
export function leaf(parent: Command, usage: string, summary: string, examples: readonly string[]): Command {
  const command = parent
    .command(usage)
    .description(summary)
    .option('--dir <dir>', "the agent's folder (default: $HOLDFAST_DIR, or the current folder)")
    .option('--json', 'print exactly one JSON document');
  return command.addHelpText(
    'after',
    `\nExamples:\n${examples.map((line) => `  $ holdfast ${line}`).join('\n')}`,
  );
}
