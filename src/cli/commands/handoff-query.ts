import type { Command } from 'commander';
import { HoldfastError } from '../../core/index.js';
import type { QueryResult } from '../../handoff/index.js';
import type { Holdfast } from '../../node/index.js';
import { findCase, ROOT_OPTION } from '../cases.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { findOffer } from '../offers.js';
import { printTable } from '../print.js';
import { type CommonOptions, leaf, type Result, type Session } from '../run.js';

interface QueryOptions extends CommonOptions {
  case?: string;
  to?: string;
  attempt?: string;
  root?: string;
}

/** Asks the receiver over the network; what this ledger holds is shown by `handoff show`. */
export function addQuery(commands: Command, session: Session): void {
  leaf(commands, 'query [handoff]', 'ask the receiver what it has decided; changes nothing', [
    'handoff query CASE-7001:2 --dir triage',
    'handoff query --case CASE-7001 --to http://127.0.0.1:4200 --dir triage',
  ])
    .option('--attempt <n>', 'which attempt (default: the last)')
    .option('--case <id>', 'every attempt on this case instead of one handoff; with --to')
    .option('--to <url>', 'the agent that is asked about a case')
    .option(...ROOT_OPTION)
    .action((handoffId: string | undefined, options: QueryOptions) =>
      session.withAgent(options, async (holdfast) => {
        if (handoffId !== undefined) return aboutOne(holdfast, handoffId, options);
        return aboutCase(holdfast, options);
      }),
    );
}

async function aboutOne(holdfast: Holdfast, handoffId: string, options: QueryOptions): Promise<Result> {
  if (options.case !== undefined || options.to !== undefined) {
    throw new HoldfastError('usage', '--case and --to ask about a case; a handoff is asked about alone.');
  }
  const offer = await findOffer(holdfast, handoffId, options);
  const { root, sender, attempt } = offer.key;
  if (sender !== holdfast.url) {
    throw new HoldfastError('usage', `Only its sender, ${sender}, can ask about ${handoffId}.`);
  }
  const { toAgent } = offer;
  const result = await holdfast.queryHandoff({ to: toAgent, root, handoffId, attempt });
  const name = `${handoffId}, attempt ${attempt}`;
  return {
    json: { asked: toAgent, handoff_id: handoffId, attempt, ...result },
    text: `${sentenceOf(result, toAgent, name)}`,
    exit: exitOf(result),
  };
}

function exitOf({ decisions: [decision] }: QueryResult): ExitCode {
  switch (decision?.verdict) {
    case 'accepted':
      return EXIT.ok;
    case 'rejected':
      return EXIT.rejected;
    case 'withdrawn':
      return EXIT.refused;
    default:
      return EXIT.undecided;
  }
}

function sentenceOf({ state, decisions: [decision] }: QueryResult, asked: string, name: string): string {
  if (decision === undefined) {
    return state === 'deciding'
      ? `${asked} is deciding at this moment (${name}).`
      : `${asked} has stored no decision (${name}), which does not mean that it never will.`;
  }
  if (decision.verdict === 'accepted') {
    return `${asked} has accepted (${name}), at epoch ${decision.epoch}; its receipt is verified (work item ${decision.workItem}).`;
  }
  return decision.verdict === 'rejected'
    ? `${asked} has rejected (${name}): ${decision.reason} [${decision.code}]`
    : `${asked} holds it for withdrawn (${name}): a late arrival is refused.`;
}

async function aboutCase(holdfast: Holdfast, options: QueryOptions): Promise<Result> {
  if (options.case === undefined || options.to === undefined) {
    throw new HoldfastError('usage', 'Name a handoff, such as CASE-7001:2, or a case with --case and --to.');
  }
  if (options.attempt !== undefined) {
    throw new HoldfastError('usage', '--attempt belongs to a handoff, not to a case.');
  }
  const { caseId, root } = await findCase(holdfast, options.case, options.root);
  const { decisions, more } = await holdfast.queryHandoff({ to: options.to, root, caseId });
  const table = printTable(
    ['HANDOFF', 'ATTEMPT', 'VERDICT', 'CODE', 'AT'],
    decisions.map((one) => [
      one.handoffId,
      String(one.attempt),
      one.verdict,
      'code' in one ? one.code : '',
      one.decidedAt,
    ]),
  );
  return {
    json: { asked: options.to, case_id: caseId, decisions, more },
    text: more ? `${table}\nThere are older ones.` : table,
  };
}
