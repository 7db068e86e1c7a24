import type { Command } from 'commander';
import { HoldfastError } from '../../core/index.js';
import type { CaseAttention } from '../../ledger/index.js';
import type { Holdfast } from '../../node/index.js';
import type { Of } from '../attention-item.js';
import { explainItem, findItem, listItems } from '../attention-report.js';
import { parseEpoch, ROOT_OPTION } from '../cases.js';
import { withoutMessage } from '../handoff-report.js';
import { type CommonOptions, group, leaf, type Result, type Session } from '../run.js';
import { nowOwned } from './people.js';

interface OneItem extends CommonOptions {
  root?: string;
  key?: string;
  what?: string;
}

interface ResolveOptions extends OneItem {
  state?: string;
  outcome?: string;
  seenEpoch?: string;
  kind?: string;
  owner?: string;
  person: string;
  reason: string;
  minutes?: string;
  record?: string[];
}

const WHAT_OPTION = [
  '--what <what>',
  'which of several things, as the list calls them, such as offer-in-doubt',
] as const;
const KEY_OPTION = ['--key <key>', 'the effect, where several of the case are unknown'] as const;

export function addAttention(program: Command, session: Session): void {
  const commands = group(program, 'attention', 'what only a person can settle', 'attention --dir triage');
  const list = ['attention list --dir triage', 'attention --json --dir triage'];
  leaf(commands, 'list', 'list what only a person can settle; `attention` alone does the same', list, {
    isDefault: true,
  }).action((options: CommonOptions) =>
    session.withAgent(options, async ({ ledger, config }) =>
      listItems(await ledger.listAttention(config.tenant)),
    ),
  );

  leaf(commands, 'show <case>', 'explain one: what happened, what is safe to do, which commands settle it', [
    'attention show CASE-7001 --dir billing',
    'attention show CASE-7001 --key refund-pay_B --dir billing',
  ])
    .option(...KEY_OPTION)
    .option(...WHAT_OPTION)
    .option(...ROOT_OPTION)
    .action((caseId: string, options: OneItem) =>
      session.withAgent(options, async (holdfast) =>
        explainItem(holdfast, await findItem(holdfast, caseId, options)),
      ),
    );

  leaf(commands, 'resolve <case>', 'settle one as a person found it; who, why and how long go to the audit', [
    'attention resolve CASE-7001 --state done --outcome re_881 --person ann --reason "found in the payments console" --minutes 12 --record payments=re_881 --dir billing',
    'attention resolve CASE-7001 --key refund-pay_B --state failed --person ann --reason "the bank has no such transfer" --dir billing',
    'attention resolve CASE-7001 --person ann --reason "restored from the backup of last night" --dir triage',
    'attention resolve CASE-7001 --what risk-double-owner --person ann --reason "billing never had it, by telephone" --dir triage',
  ])
    .requiredOption('--person <id>', 'the person who found out, such as ann.meyer')
    .requiredOption('--reason <text>', 'how it was found out, in one line without personal data')
    .option('--state <state>', 'of an unknown effect: done, or failed (proved not to have happened)')
    .option('--outcome <reference>', "the target's record of it, such as a refund id; with --state done")
    .option(
      '--seen-epoch <n>',
      'of a quarantined case: the highest epoch that anybody has seen (default: as witnessed)',
    )
    .option('--kind <kind>', 'of a quarantined case that the ledger has lost: its kind')
    .option(
      '--owner <url>',
      'of a quarantined case of a separate kind: the agent that owns it, or person:ID@URL, as was found',
    )
    .option('--minutes <n>', 'how many minutes it took')
    .option('--record <name=id...>', 'what was looked up or touched, such as payments=re_881')
    .option(...KEY_OPTION)
    .option(...WHAT_OPTION)
    .option(...ROOT_OPTION)
    .action((caseId: string, options: ResolveOptions) =>
      session.withAgent(options, async (holdfast) => {
        const said = resolutionOf(options);
        return resolve(holdfast, await findItem(holdfast, caseId, options), options, said);
      }),
    );
}

function resolutionOf({ person, reason, minutes, record }: ResolveOptions) {
  return {
    person,
    reason,
    ...(minutes === undefined ? {} : { minutes: parseMinutes(minutes) }),
    ...(record === undefined ? {} : { records: record.map(parseRecord) }),
  };
}

async function resolve(
  holdfast: Holdfast,
  item: CaseAttention,
  { state, outcome, seenEpoch, kind, owner }: ResolveOptions,
  said: ReturnType<typeof resolutionOf>,
): Promise<Result> {
  const { ref, what } = item;
  if (what === 'effect_unknown') {
    if (seenEpoch !== undefined || kind !== undefined || owner !== undefined)
      throw misplaced('--seen-epoch, --kind and --owner', 'a quarantined case');
    const found = { ...parseState(state, outcome), ...said };
    const effect = await holdfast.resolveEffect({ ref, key: item.data.key, ...found });
    return { json: { effect }, text: `${effect.key} is ${effect.state}.` };
  }
  if (what === 'question_open' || what === 'candidates_exhausted' || what === 'decision_waiting') {
    const how = {
      question_open: 'answering or voiding the offer',
      candidates_exhausted: 'offering or giving the case to somebody',
      decision_waiting: 'accepting or rejecting the offer',
    }[what];
    throw new HoldfastError(
      'usage',
      `That is settled by ${how}; \`holdfast attention show ${ref.caseId}\` shows the commands.`,
    );
  }
  if (state !== undefined || outcome !== undefined)
    throw misplaced('--state and --outcome', 'an unknown effect');
  if (what !== 'case_quarantined') {
    if (seenEpoch !== undefined || kind !== undefined || owner !== undefined)
      throw misplaced('--seen-epoch, --kind and --owner', 'a quarantined case');
    return settleDoubt(holdfast, item, said);
  }
  const row = await holdfast.recoverCase({
    ref,
    ...(seenEpoch === undefined ? {} : { seenEpoch: parseEpoch(seenEpoch, '--seen-epoch') }),
    ...(kind === undefined ? {} : { kind }),
    ...(owner === undefined ? {} : { owner }),
    ...said,
  });
  return nowOwned(row);
}

async function settleDoubt(
  holdfast: Holdfast,
  { ref, what, data }: Of<'offer_in_doubt' | 'risk_double_owner'>,
  said: ReturnType<typeof resolutionOf>,
): Promise<Result> {
  const { sender, handoffId, attempt, toAgent } = data;
  if (what === 'offer_in_doubt') {
    throw new HoldfastError(
      'usage',
      `Only ${toAgent} can settle ${handoffId}, attempt ${attempt}, by its answer. \`holdfast attention show ${ref.caseId}\` says what can be done meanwhile.`,
    );
  }
  const key = { tenant: ref.tenant, root: ref.root, sender, handoffId, attempt };
  const offer = await holdfast.settleDoubt({ ref, key, ...said });
  return {
    json: { offer: withoutMessage(offer) },
    text: `${handoffId}, attempt ${attempt}, is ${offer.state}: ${toAgent} does not own ${ref.caseId}, as ${said.person} found out.`,
  };
}

function misplaced(options: string, what: string): HoldfastError {
  return new HoldfastError('usage', `${options} are for ${what}.`);
}

function parseState(state: string | undefined, outcome: string | undefined) {
  if (state === 'done' && outcome !== undefined && outcome.trim() !== '') return { state, outcome } as const;
  if (state === 'failed' && outcome === undefined) return { state } as const;
  throw new HoldfastError(
    'usage',
    'An unknown effect is settled with --state done and the --outcome that proves it, or with --state failed and no outcome.',
  );
}

function parseMinutes(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new HoldfastError('usage', '--minutes is a whole number from 0.');
}

function parseRecord(text: string): { name: string; id: string } {
  const at = text.indexOf('=');
  if (at > 0 && at < text.length - 1) return { name: text.slice(0, at), id: text.slice(at + 1) };
  throw new HoldfastError('usage', '--record is NAME=ID, such as payments=re_881.');
}
