import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { ERROR_TABLE, HoldfastError, isHoldfastError } from '../core/index.js';
import { type Holdfast, ledgerPlace, openHoldfast, readConfig, redactUrl } from '../node/index.js';
import { EXIT, type ExitCode, exitCodeOf } from './exit-codes.js';
import { reasonOf } from './files.js';
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
  readonly db?: string;
}

/** What every command is given to work with. */
export class Session {
  exit: ExitCode = EXIT.ok;

  constructor(readonly io: Io) {}

  dirOf(options: CommonOptions): string {
    return resolve(options.dir ?? (this.io.env.HOLDFAST_DIR || '.'));
  }

  /** The ledger that is named instead of the configured one. */
  ledgerOf(options: CommonOptions): string | undefined {
    return options.db ?? (this.io.env.HOLDFAST_DB || undefined);
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
      const holdfast = await openAgent(this.dirOf(options), this.ledgerOf(options));
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
      this.io.out(`${JSON.stringify({ error: errorDocument(known) })}\n`);
    }
    this.io.err(`holdfast: ${oneLine(sentenceOf(known))}\n`);
    if (this.io.env.HOLDFAST_DEBUG === '1') this.io.err(`${(known.cause as Error)?.stack ?? known.stack}\n`);
  }
}

async function openAgent(dir: string, ledger: string | undefined): Promise<Holdfast> {
  try {
    return await openHoldfast({ dir, ...(ledger === undefined ? {} : { ledger }) });
  } catch (error) {
    throw isUnavailable(error) ? unavailable(error, ledgerPlace(readConfig(dir), dir, ledger).target) : error;
  }
}

export function isUnavailable(error: unknown): error is HoldfastError {
  return isHoldfastError(error) && error.code === 'ledger_unavailable';
}

/** The same error with the ledger that cannot be opened, and why. */
export function unavailable(error: HoldfastError, target: string): HoldfastError {
  const ledger = redactUrl(target);
  const said = error.message === ERROR_TABLE.ledger_unavailable.meaning ? null : error.message;
  const reason = said ?? `${isFolder(target) ? 'it is a folder' : reasonOf(error.cause)}.`;
  return new HoldfastError('ledger_unavailable', `The ledger ${ledger} cannot be opened: ${reason}`, {
    data: { ...error.data, ledger },
    cause: error.cause,
  });
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** What `--json` says of an error, whoever found it. */
export function errorDocument(error: HoldfastError) {
  const { code, message, fields, data, retry } = error;
  return { code, message, fields, data, hint: hintOf(error), retry, exit: exitCodeOf(code) };
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

/** A sentence starts with a capital, unless it starts with a file's or another thing's name. */
export function asSentence(text: string): string {
  const start = /^[a-z]+(?=[\s,])/.test(text) ? text.charAt(0).toUpperCase() : text.charAt(0);
  return `${start}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Commands about one sort of thing. */
export function group(parent: Command, name: string, summary: string, example: string): Command {
  return parent
    .command(name)
    .description(summary)
    .addHelpText('after', `\nExample:\n  $ holdfast ${example}`);
}

/**
 * A command that does something, with the options all of them have; `--dir` only where there is an agent to it, `--db` only where its
 * ledger is opened. `isDefault`: what its group does where no command is named.
 */
export function leaf(
  parent: Command,
  usage: string,
  summary: string,
  examples: readonly string[],
  { dir = true, db = dir, isDefault = false }: { dir?: boolean; db?: boolean; isDefault?: boolean } = {},
): Command {
  const command = parent.command(usage, { isDefault }).description(summary);
  if (dir)
    command.option('--dir <dir>', "the agent's folder (default: $HOLDFAST_DIR, or the current folder)");
  if (db) {
    command.option(
      '--db <target>',
      'the ledger: a file, or postgres://user@host/name (default: $HOLDFAST_DB, or the configured one)',
    );
  }
  command.option('--json', 'print exactly one JSON document');
  return command.addHelpText(
    'after',
    `\nExamples:\n${examples.map((line) => `  $ holdfast ${line}`).join('\n')}`,
  );
}
