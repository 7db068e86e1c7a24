import { Command, CommanderError } from 'commander';
import { VERSION } from '../node/index.js';
import { addAudit } from './commands/audit.js';
import { addCase } from './commands/case.js';
import { addConfig } from './commands/config.js';
import { addDemo } from './commands/demo.js';
import { addEffect } from './commands/effect.js';
import { addErrors } from './commands/errors.js';
import { addEvidence } from './commands/evidence.js';
import { addHandoff } from './commands/handoff.js';
import { addIdentity } from './commands/identity.js';
import { addInit } from './commands/init.js';
import { addKind } from './commands/kind.js';
import { addPeerCommands } from './commands/peer.js';
import { addServe } from './commands/serve.js';
import { addWork } from './commands/work.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { type Io, processIo } from './io.js';
import { Session } from './run.js';

const GROUPS = [
  addInit,
  addPeerCommands,
  addIdentity,
  addServe,
  addConfig,
  addKind,
  addCase,
  addEffect,
  addEvidence,
  addHandoff,
  addWork,
  addAudit,
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
    await program.parseAsync(argv, { from: 'user' });
    return session.exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      session.fail(error, wantsJson(argv));
      return session.exit;
    }
    if (error.exitCode === 0) return EXIT.ok;
    // Commander has said on stderr what is wrong; a group without a command has shown its help there.
    if (wantsJson(argv)) {
      const message = error.message.replace(/^error: /, '');
      io.out(`${JSON.stringify({ error: { code: 'usage', message, fields: [], data: {} } })}\n`);
    }
    return EXIT.badInput;
  }
}

/** Commander would end the process and write to the real streams. */
function guard(command: Command, io: Io): void {
  command.exitOverride().configureOutput({
    writeOut: (text) => io.out(text),
    writeErr: (text) => io.err(text),
    outputError: (text, write) => write(text.replace(/^error: /, 'holdfast: ')),
    getOutHasColors: () => io.color,
    getErrHasColors: () => false,
  });
  for (const sub of command.commands) guard(sub, io);
}

function wantsJson(argv: readonly string[]): boolean {
  return argv.includes('--json');
}
