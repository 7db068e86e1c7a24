import type { Command } from 'commander';
import { formatMoney, HoldfastError, type Money, parseMoney } from '../../core/index.js';
import { findCase, parseEpoch, ROOT_OPTION } from '../cases.js';
import { printTable } from '../print.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';
import { PERSON_OPTION } from './people.js';

interface WriteOptions extends CommonOptions {
  root?: string;
  epoch: string;
  key: string;
}

interface StartOptions extends WriteOptions {
  operation: string;
  amount?: string;
}

interface SettleOptions extends WriteOptions {
  person?: string;
  state: string;
  outcome?: string;
}

export function addEffect(program: Command, session: Session): void {
  const commands = group(
    program,
    'effect',
    'side effects on business systems, fenced and unique by key',
    'effect list CASE-7001 --dir billing',
  );
  leaf(commands, 'start <case>', 'record an effect as started, before the call outside is made', [
    'effect start CASE-7001 --epoch 2 --key refund-pay_B --operation refund --amount "49.00 EUR" --dir billing',
  ])
    .requiredOption('--epoch <n>', 'the epoch under which you own the case')
    .requiredOption('--key <key>', 'names this one effect of the case; pass it on as the idempotency key')
    .requiredOption('--operation <name>', 'what is done, such as refund')
    .option('--amount <amount>', 'its amount with the currency, such as "49.00 EUR"')
    .option(...ROOT_OPTION)
    .action((id: string, options: StartOptions) =>
      session.withAgent(options, async (holdfast) => {
        const effect = await holdfast.startEffect({
          ref: await findCase(holdfast, id, options.root),
          epoch: parseEpoch(options.epoch),
          key: options.key,
          operation: options.operation,
          ...(options.amount === undefined ? {} : { amount: parseAmount(options.amount) }),
        });
        return {
          json: { effect },
          text: `Started ${effect.key} on ${id}; settle it before ${effect.limitAt}.`,
        };
      }),
    );
  leaf(commands, 'settle <case>', 'record what became of an effect', [
    'effect settle CASE-7001 --epoch 2 --key refund-pay_B --state done --outcome re_881 --dir billing',
  ])
    .requiredOption('--epoch <n>', 'the epoch under which you own the case')
    .requiredOption('--key <key>', 'the key it was started with')
    .requiredOption('--state <state>', 'done, failed (proved not to have happened) or unknown')
    .option('--outcome <reference>', "the target's record of it, such as a refund id")
    .option(...PERSON_OPTION)
    .option(...ROOT_OPTION)
    .action((id: string, options: SettleOptions) =>
      session.withAgent(options, async (holdfast) => {
        const effect = await holdfast.settleEffect({
          ref: await findCase(holdfast, id, options.root),
          epoch: parseEpoch(options.epoch),
          key: options.key,
          state: parseState(options.state),
          ...(options.person === undefined ? {} : { person: options.person }),
          ...(options.outcome === undefined ? {} : { outcome: options.outcome }),
        });
        return { json: { effect }, text: `${effect.key} is ${effect.state}.` };
      }),
    );
  leaf(commands, 'list <case>', 'list the effects of a case', ['effect list CASE-7001 --dir billing'])
    .option(...ROOT_OPTION)
    .action((id: string, options: CommonOptions & { root?: string }) =>
      session.withAgent(options, async (holdfast) => {
        const effects = await holdfast.ledger.listEffects(await findCase(holdfast, id, options.root));
        return {
          json: { effects },
          text: printTable(
            ['KEY', 'OPERATION', 'AMOUNT', 'STATE', 'EPOCH', 'OUTCOME'],
            effects.map(({ key, operation, amount, state, epoch, outcome }) => [
              key,
              operation,
              amount ? formatMoney(amount) : '',
              state,
              String(epoch),
              outcome ?? '',
            ]),
          ),
        };
      }),
    );
}

function parseAmount(text: string): Money {
  const money = parseMoney(text);
  if (money !== null) return money;
  throw new HoldfastError('usage', '--amount is an amount with its currency, such as "49.00 EUR".');
}

function parseState(text: string): 'done' | 'failed' | 'unknown' {
  if (text === 'done' || text === 'failed' || text === 'unknown') return text;
  throw new HoldfastError('usage', '--state is done, failed or unknown.');
}
