import type { Command } from 'commander';
import { HoldfastError } from '../../core/index.js';
import type { NotificationEntry } from '../../ledger/index.js';
import { printTable } from '../print.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';

const STATES = ['waiting', 'dead'] as const;
const TENANT = [
  '--tenant <name>',
  "the tenant of the peers that they are for (default: this agent's)",
] as const;

type PushOptions = CommonOptions & { readonly tenant?: string };

export function addPush(program: Command, session: Session): void {
  const commands = group(
    program,
    'push',
    'push notifications of tasks: those on their way, and those that could not be delivered',
    'push list --state dead --dir billing',
  );
  leaf(commands, 'list', 'list notifications that are not delivered', [
    'push list --dir billing',
    'push list --state dead --limit 20',
  ])
    .option('--state <state>', `only ${STATES.join(' or ')}`)
    .option('--limit <number>', 'at most so many (default: 100)', '100')
    .option(...TENANT)
    .action((options: PushOptions & { state?: string; limit: string }) =>
      session.withAgent(options, async ({ ledger, config }) => {
        const { tenant = config.tenant } = options;
        const state = parseState(options.state);
        const limit = parseLimit(options.limit);
        const filter = { limit, ...(state === undefined ? {} : { state }) };
        const notifications = await ledger.listNotifications(tenant, filter);
        const counts = await ledger.countNotifications(tenant);
        const table = printTable(
          ['NOTIFICATION', 'STATE', 'TRIES', 'REASON', 'SINCE', 'NEXT TRY', 'TO'],
          notifications.map(rowOf),
        );
        return {
          json: { notifications: notifications.map((one) => ({ id: idOf(one), ...one })), counts },
          text: `${table}\n${counts.waiting} waiting, ${counts.dead} dead.`,
        };
      }),
    );
  leaf(commands, 'show <notification>', 'show what a notification says', [
    'push show push_4mZ…-3 --dir billing',
  ])
    .option(...TENANT)
    .action((id: string, options: PushOptions) =>
      session.withAgent(options, async ({ ledger, config }) => {
        const { pushId, seq } = parseId(id);
        const found = await ledger.getNotification(options.tenant ?? config.tenant, pushId, seq);
        if (found === null)
          throw new HoldfastError('not_found', `There is no notification ${id}; it may be delivered.`);
        const { body, ...about } = found;
        const said = JSON.parse(body);
        const { state, tries, reason, at, triedAt } = about;
        const tried =
          triedAt === null ? 'not tried yet' : `tried ${tries} times, last at ${triedAt}: ${reason}`;
        return {
          json: { notification: { id, ...about, body: said } },
          text: `${id} is ${state}, of ${at}; ${tried}.\n${JSON.stringify(said, null, 2)}`,
        };
      }),
    );
  leaf(commands, 'retry [notification]', 'try dead notifications again, as if they were new', [
    'push retry push_4mZ…-3 --dir billing',
    'push retry --all --dir billing',
  ])
    .option('--all', 'all of this agent')
    .option(...TENANT)
    .action((id: string | undefined, options: PushOptions & { all?: boolean }) =>
      session.withAgent(options, async (holdfast) => {
        if ((id === undefined) !== (options.all === true)) {
          throw new HoldfastError('usage', 'Name one notification, or all with --all.');
        }
        const { tenant = holdfast.config.tenant } = options;
        const retried = await holdfast.retryNotifications({
          tenant,
          ...(id === undefined ? {} : parseId(id)),
        });
        if (retried === 0 && id !== undefined) {
          throw new HoldfastError('not_found', `There is no dead notification ${id} of this agent.`);
        }
        return { json: { retried }, text: `${retried} waiting again; a running node delivers them.` };
      }),
    );
}

/** As the endpoint knows it: its `webhook-id`. */
const idOf = ({ pushId, seq }: NotificationEntry): string => `${pushId}-${seq}`;

function rowOf(one: NotificationEntry): string[] {
  const { state, tries, reason, at, dueAt, origin } = one;
  const next = state === 'dead' ? '-' : (dueAt ?? '-');
  return [idOf(one), state, String(tries), reason ?? '-', at, next, origin];
}

function parseId(text: string): { pushId: string; seq: number } {
  const match = /^(push_[A-Za-z0-9_-]{1,64})-(\d{1,15})$/.exec(text);
  if (match === null)
    throw new HoldfastError(
      'usage',
      `${text.slice(0, 100)} is no id of a notification; \`holdfast push list\` shows them.`,
    );
  return { pushId: match[1] as string, seq: Number(match[2]) };
}

function parseState(text: string | undefined) {
  const state = STATES.find((known) => known === text);
  if (text !== undefined && state === undefined)
    throw new HoldfastError('usage', '--state is waiting or dead.');
  return state;
}

function parseLimit(text: string): number {
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (limit < 1) throw new HoldfastError('usage', '--limit is a whole number from 1 to 999999.');
  return limit;
}
