import type { Command } from 'commander';
import { HoldfastError } from '../../core/index.js';
import type { WorkState } from '../../ledger/index.js';
import { printTable } from '../print.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';
import { describeWork, withDocuments } from '../work-report.js';

const STATES: readonly WorkState[] = ['open', 'done', 'failed', 'superseded'];

export function addWork(program: Command, session: Session): void {
  const commands = group(
    program,
    'work',
    'what accepted handoffs gave this agent to do',
    'work list --state open --dir billing',
  );
  leaf(commands, 'list', "list this agent's work items", [
    'work list --dir billing',
    'work list --state open',
  ])
    .option('--state <state>', `only ${STATES.join(', ')}`)
    .action((options: CommonOptions & { state?: string }) =>
      session.withAgent(options, async ({ ledger, config, url }) => {
        const state = parseState(options.state);
        const items = await ledger.listWork(config.tenant, { owner: url, ...(state ? { state } : {}) });
        return {
          json: { work: items.map(withDocuments) },
          text: printTable(
            ['WORK ITEM', 'CASE', 'CONTRACT', 'STATE', 'EPOCH', 'SINCE'],
            items.map(({ id, ref, contract, state: now, epoch, createdAt }) => [
              id,
              ref.caseId,
              contract,
              now,
              String(epoch),
              createdAt,
            ]),
          ),
        };
      }),
    );
  leaf(commands, 'show <work>', 'show what was handed over: goal, facts, constraints and evidence', [
    'work show work_4mZ… --dir billing',
  ]).action((workId: string, options: CommonOptions) =>
    session.withAgent(options, async (holdfast) => {
      const item = await holdfast.ledger.getWork(holdfast.config.tenant, workId);
      if (item) return describeWork(holdfast, item);
      throw new HoldfastError('work_unknown', `There is no work item ${workId} in this ledger.`);
    }),
  );
  for (const [name, state] of [
    ['done', 'done'],
    ['fail', 'failed'],
  ] as const) {
    leaf(commands, `${name} <work>`, `settle a work item as ${state}`, [
      `work ${name} work_4mZ… --dir billing`,
      `work ${name} work_4mZ… --result '{"decision":"${state === 'done' ? 'refunded' : 'declined'}"}' --dir billing`,
    ])
      .option('--result <json>', 'what came of it, as JSON')
      .action((workId: string, options: CommonOptions & { result?: string }) =>
        session.withAgent(options, async (holdfast) => {
          const item = await holdfast.settleWork({
            workId,
            state,
            ...(options.result === undefined ? {} : { result: parseResult(options.result) }),
          });
          return { json: { work: withDocuments(item) }, text: `${item.id} is ${item.state}.` };
        }),
      );
  }
}

function parseState(text: string | undefined): WorkState | undefined {
  const state = STATES.find((known) => known === text);
  if (text !== undefined && !state)
    throw new HoldfastError('usage', `--state is one of ${STATES.join(', ')}.`);
  return state;
}

function parseResult(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HoldfastError('usage', '--result is not JSON.');
  }
}
