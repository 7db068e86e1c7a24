import type { Command } from 'commander';
import { HoldfastError, normalizeAgentUrl } from '../../core/index.js';
import type { DecisionRow, PendingOffer } from '../../ledger/index.js';
import type { Holdfast } from '../../node/index.js';
import { ROOT_OPTION } from '../cases.js';
import { printTable } from '../print.js';
import { type CommonOptions, leaf, type Result, type Session } from '../run.js';

interface DecideOptions extends CommonOptions {
  person: string;
  attempt?: string;
  from?: string;
  root?: string;
  code?: string;
  reason?: string;
  hint?: string;
}

const PERSON = ['--person <id>', 'the person who decides, such as ann.meyer'] as const;

/** Offers to this agent that are not decided yet, and a person's word on them. */
export function addPending(commands: Command, session: Session): void {
  leaf(commands, 'pending', 'list the offers to this agent that are not decided yet, oldest first', [
    'handoff pending --dir billing',
  ]).action((options: CommonOptions) =>
    session.withAgent(options, async (holdfast) => {
      const pending = (await holdfast.listPending()).map(({ message: _, ...shown }) => shown);
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
  return leaf(commands, `${name} <handoff>`, summary, [
    `handoff ${name} CASE-7001:2 --person ann${more} --dir billing`,
  ])
    .requiredOption(...PERSON)
    .option('--attempt <n>', 'which attempt (default: the only one that waits)')
    .option('--from <url>', 'whose offer, where several agents have made one')
    .option(...ROOT_OPTION)
    .action((handoffId: string, options: DecideOptions) =>
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

/** The one that a person means. @throws offer_unknown, usage where several fit */
async function findPending(
  holdfast: Holdfast,
  handoffId: string,
  { attempt, from, root }: DecideOptions,
): Promise<PendingOffer> {
  const found = (await holdfast.listPending()).filter(
    ({ key }) =>
      key.handoffId === handoffId &&
      (attempt === undefined || String(key.attempt) === attempt) &&
      (from === undefined || key.sender === normalizeAgentUrl(from)) &&
      (root === undefined || key.root === normalizeAgentUrl(root)),
  );
  const [only] = found;
  if (only === undefined) {
    throw new HoldfastError('offer_unknown', `No offer ${handoffId} waits for a decision here.`);
  }
  if (found.length === 1) return only;
  throw new HoldfastError(
    'usage',
    `Several offers ${handoffId} wait: say which with --from, --attempt or --root.`,
  );
}
