import { Command, CommanderError, Help } from 'commander';
import { HoldfastError } from '../core/index.js';
import { VERSION } from '../node/index.js';
import { addAttention } from './commands/attention.js';
import { addAudit } from './commands/audit.js';
import { addCase } from './commands/case.js';
import { addConfig } from './commands/config.js';
import { addDb } from './commands/db.js';
import { addDemo } from './commands/demo.js';
import { addEffect } from './commands/effect.js';
import { addErrors } from './commands/errors.js';
import { addEvidence } from './commands/evidence.js';
import { addFence } from './commands/fence.js';
import { addHandoff } from './commands/handoff.js';
import { addIdentity } from './commands/identity.js';
import { addInit } from './commands/init.js';
import { addKey } from './commands/key.js';
import { addKind } from './commands/kind.js';
import { addPeerCommands } from './commands/peer.js';
import { addPush } from './commands/push.js';
import { addServe } from './commands/serve.js';
import { addWitness } from './commands/witness.js';
import { addWork } from './commands/work.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { type Io, processIo } from './io.js';
import { oneLine } from './print.js';
import { asSentence, errorDocument, Session } from './run.js';

const GROUPS = [
  addInit,
  addPeerCommands,
  addIdentity,
  addKey,
  addServe,
  addConfig,
  addKind,
  addCase,
  addEffect,
  addEvidence,
  addHandoff,
  addWork,
  addPush,
  addAudit,
  addAttention,
  addWitness,
  addFence,
  addDb,
  addDemo,
  addErrors,
];

/** Runs one command of `holdfast` and returns its exit status; never throws and never ends the process. */
export async function main(argv: readonly string[], io: Io = processIo): Promise<ExitCode> {
  const session = new Session(io);
  const program = new Command('holdfast')
    .description('Move responsibility between A2A agents without dropping it and without doubling it.')
    .version(VERSION)
    .showHelpAfterError('(--help shows how it is used)')
    .addHelpText(
      'after',
      '\nEach command has --help with examples. `holdfast errors` lists error codes and exit statuses.',
    );
  for (const add of GROUPS) add(program, session);
  guard(program, io);
  try {
    await program.parseAsync(knowsCommand(program, argv) ? argv : withoutHelp(argv), { from: 'user' });
    return session.exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      session.fail(error, wantsJson(argv));
      return session.exit;
    }
    if (error.exitCode === 0) return EXIT.ok;
    // Commander has said on stderr what is wrong; a group without a command has shown its help there.
    if (wantsJson(argv)) {
      const usage = new HoldfastError('usage', oneLine(error.message.replace(/^error: /, '')));
      io.out(`${JSON.stringify({ error: errorDocument(usage) })}\n`);
    }
    return EXIT.badInput;
  }
}

/** Commander would end the process and write to the real streams. */
function guard(command: Command, io: Io): void {
  command.exitOverride().configureOutput({
    writeOut: (text) => io.out(text),
    writeErr: (text) => io.err(text),
    outputError: (text, write) =>
      write(`holdfast: ${asSentence(oneLine(text.replace(/^error: /, '').trim()))} [usage]\n`),
    getOutHasColors: () => io.color,
    getErrHasColors: () => false,
  });
  command.configureHelp({
    optionDescription(option) {
      const required = option.mandatory ? ' (required)' : '';
      return `${Help.prototype.optionDescription.call(this, option)}${required}`;
    },
  });
  for (const sub of command.commands) guard(sub, io);
}

function wantsJson(argv: readonly string[]): boolean {
  return argv.includes('--json');
}

/** Whether the words name a command; a group shown for one that does not exist would look like its help. */
function knowsCommand(program: Command, argv: readonly string[]): boolean {
  let command = program;
  for (const word of argv) {
    if (command.commands.length === 0) return true;
    if (word.startsWith('-')) continue;
    const next = command.commands.find((sub) => sub.name() === word);
    if (!next) return word === 'help';
    command = next;
  }
  return true;
}

function withoutHelp(argv: readonly string[]): string[] {
  return argv.filter((word) => word !== '--help' && word !== '-h');
}
