import type { Command } from 'commander';
import type { CaseRow } from '../../ledger/index.js';
import type { Holdfast } from '../../node/index.js';
import { findCase, parseEpoch, ROOT_OPTION } from '../cases.js';
import { type CommonOptions, leaf, type Result, type Session } from '../run.js';

/** For commands in which a person may write: the operator says who they are, and the node signs for them. */
export const PERSON_OPTION = [
  '--person <id>',
  'the person who owns the case, such as ann.meyer (default: this agent owns it)',
] as const;

const REASON_OPTION = ['--reason <text>', 'why, in one line without personal data, for the audit'] as const;

interface ChangeOptions extends CommonOptions {
  root?: string;
  epoch: string;
  person: string;
  reason: string;
  to?: string;
  force?: boolean;
}

type Change = (
  holdfast: Holdfast,
  input: Parameters<Holdfast['takeCase']>[0],
  options: ChangeOptions,
) => Promise<CaseRow>;

/** Ways in which a person becomes the owner of a case, or ceases to be. */
export function addOwnerChanges(commands: Command, session: Session): void {
  change(commands, session, {
    name: 'take',
    summary: 'take a case over as a person; an open offer is closed first, open work is superseded',
    person: 'the person who takes it, such as ann.meyer',
    examples: [
      'case take CASE-7001 --person ann --epoch 2 --reason "billing has not answered" --dir billing',
      'case take CASE-7001 --person ann --epoch 2 --force --reason "billing is gone for good" --dir triage',
    ],
    carryOut: (holdfast, input, { force = false }) =>
      holdfast.takeCase({ ...input, ...(force ? { force } : {}) }),
  }).option(
    '--force',
    'even though the open offer is in doubt, and its receiver may own the case too (kinds of mode separate)',
  );
  change(commands, session, {
    name: 'reassign',
    summary: 'pass a case on from the person who owns it to another',
    person: 'the person who owns it',
    examples: [
      'case reassign CASE-7001 --person ann --to bob --epoch 3 --reason "end of shift" --dir billing',
    ],
    carryOut: (holdfast, input, { to = '' }) => holdfast.reassignCase({ ...input, to }),
  }).requiredOption('--to <id>', 'the person who is to own it');
  change(commands, session, {
    name: 'return',
    summary: 'give a case back from the person who owns it to this agent',
    person: 'the person who owns it',
    examples: [
      'case return CASE-7001 --person ann --epoch 3 --reason "duplicate is confirmed" --dir billing',
    ],
    carryOut: (holdfast, input) => holdfast.returnCase(input),
  });
}

/** The options of an escalation, which is a command about an offer. */
export function asEscalation(command: Command): Command {
  return command
    .requiredOption('--person <id>', 'the person who is to own the case, such as ann.meyer')
    .requiredOption(...REASON_OPTION);
}

/** What a person and a program are told once a case has another owner. */
export function nowOwned(row: CaseRow): Result {
  const { ref, owner, epoch } = row;
  return { json: { case: row }, text: `${owner} owns ${ref.caseId} (root ${ref.root}) at epoch ${epoch}.` };
}

function change(
  commands: Command,
  session: Session,
  {
    name,
    summary,
    person,
    examples,
    carryOut,
  }: { name: string; summary: string; person: string; examples: readonly string[]; carryOut: Change },
): Command {
  return leaf(commands, `${name} <id>`, summary, examples)
    .requiredOption('--person <id>', person)
    .requiredOption('--epoch <n>', 'the epoch at which you looked at the case')
    .requiredOption(...REASON_OPTION)
    .option(...ROOT_OPTION)
    .action((id: string, options: ChangeOptions) =>
      session.withAgent(options, async (holdfast) => {
        const { person: who, reason } = options;
        const epoch = parseEpoch(options.epoch);
        const ref = await findCase(holdfast, id, options.root);
        return nowOwned(await carryOut(holdfast, { ref, epoch, person: who, reason }, options));
      }),
    );
}
