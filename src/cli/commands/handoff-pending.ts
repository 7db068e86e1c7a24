import type { Command } from 'commander';
import type { DecisionRow, PendingOffer } from '../../ledger/index.js';
import type { Holdfast } from '../../node/index.js';
import { ROOT_OPTION } from '../cases.js';
import { describePending, findPending, type WhichOffer, withoutContent } from '../pending-report.js';
import { printTable } from '../print.js';
import { type CommonOptions, leaf, type Result, type Session } from '../run.js';

interface DecideOptions extends CommonOptions, WhichOffer {
  person: string;
  code?: string;
  reason?: string;
  hint?: string;
}

const PERSON = ['--person <id>', 'the person who decides, such as ann.meyer'] as const;

/** Offers to this agent that are not decided yet, and a person's word on them. */
export function addPending(commands: Command, session: Session): void {
  const summary =
    'list the offers to this agent that are not decided yet, oldest first; of one, show what it says of the case';
  which(
    leaf(commands, 'pending [handoff]', summary, [
      'handoff pending --dir billing',
      'handoff pending CASE-7001:2 --dir billing',
    ]),
  ).action((handoffId: string | undefined, options: CommonOptions & WhichOffer) =>
    session.withAgent(options, async (holdfast): Promise<Result> => {
      if (handoffId !== undefined) {
        return describePending(holdfast, await findPending(holdfast, handoffId, options));
      }
      const pending = (await holdfast.listPending()).map(withoutContent);
      const rows = pending.map(({ key, contract, state, clarifications, acceptBy }) => [
        key.handoffId,
        String(key.attempt),
        key.sender,
        contract,
        state,
        clarifications
          .find(({ answer }) => answer === null)
          ?.question.split('\n')[0]
          ?.slice(0, 60) ?? '',
        acceptBy,
      ]);
      const heads = ['HANDOFF', 'ATTEMPT', 'FROM', 'CONTRACT', 'STATE', 'QUESTION', 'ACCEPT BY'];
      return {
        json: { pending },
        text: rows.length === 0 ? 'No offer waits for a decision.' : printTable(heads, rows),
      };
    }),
  );

  decide(commands, session, 'accept', {
    summary: 'accept an offer that is not decided yet, as a person; this agent owns the case then',
    more: '',
    carryOut: (holdfast, { key }, { person }) => holdfast.acceptPending({ key, person }),
  });
  decide(commands, session, 'reject', {
    summary: 'reject an offer that is not decided yet, as a person',
    more: ' --code records_disagree --reason "pay_B is not known here"',
    carryOut: (holdfast, { key }, { person, code = '', reason = '', hint }) =>
      holdfast.rejectPending({ key, person, code, reason, ...(hint === undefined ? {} : { hint }) }),
  })
    .requiredOption('--code <code>', 'a rejection code, or one that the contract declares')
    .requiredOption('--reason <text>', 'why, for the sender, without personal data')
    .option('--hint <text>', 'what the sender could do instead');
}

function decide(
  commands: Command,
  session: Session,
  name: 'accept' | 'reject',
  {
    summary,
    more,
    carryOut,
  }: {
    summary: string;
    more: string;
    carryOut(holdfast: Holdfast, pending: PendingOffer, options: DecideOptions): Promise<DecisionRow>;
  },
): Command {
  const command = leaf(commands, `${name} <handoff>`, summary, [
    `handoff ${name} CASE-7001:2 --person ann${more} --dir billing`,
  ]);
  return which(command.requiredOption(...PERSON)).action((handoffId: string, options: DecideOptions) =>
    session.withAgent(options, async (holdfast): Promise<Result> => {
      const pending = await findPending(holdfast, handoffId, options);
      const decision = await carryOut(holdfast, pending, options);
      const { key } = pending;
      const named = `${key.handoffId}, attempt ${key.attempt}, from ${key.sender}`;
      const text =
        decision.verdict === 'accepted'
          ? `Accepted (${named}): ${holdfast.url} owns the case at epoch ${decision.epochAfter}.`
          : `Rejected (${named}) [${decision.code}].`;
      return { json: { decision }, text };
    }),
  );
}

function which(command: Command): Command {
  return command
    .option('--attempt <n>', 'which attempt (default: the only one that waits)')
    .option('--from <url>', 'whose offer, where several agents have made one')
    .option(...ROOT_OPTION);
}
