import type { Command } from 'commander';
import { systemClock } from '../../core/index.js';
import { loadIdentity, prepareKey, readConfig, rotateKey } from '../../node/index.js';
import { printTable } from '../print.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';

export function addKey(program: Command, session: Session): void {
  const commands = group(
    program,
    'key',
    "the agent's signing keys, and how to change them",
    'key list --dir triage',
  );
  leaf(commands, 'list', 'list the keys: in use, prepared and retired', ['key list --dir triage'], {
    db: false,
  }).action((options: CommonOptions) =>
    session.finish(options, async () => {
      const identity = await loadIdentity(session.dirOf(options));
      const next = identity.nextThumbprint;
      const keys = [
        { thumbprint: identity.thumbprint, state: 'in_use', retired_at: null },
        ...(next === null ? [] : [{ thumbprint: next, state: 'prepared', retired_at: null }]),
        ...identity.retired.map(({ thumbprint, retiredAt }) => ({
          thumbprint,
          state: 'retired',
          retired_at: retiredAt,
        })),
      ];
      const rows = keys.map(({ thumbprint, state, retired_at }) => [
        thumbprint,
        state.replace('_', ' '),
        retired_at ?? '',
      ]);
      return { json: { keys }, text: printTable(['THUMBPRINT', 'STATE', 'RETIRED AT'], rows) };
    }),
  );

  leaf(
    commands,
    'prepare',
    'make the key to change to, so that peers can be told first',
    ['key prepare --dir triage'],
    { db: false },
  ).action((options: CommonOptions) =>
    session.finish(options, async () => {
      const dir = session.dirOf(options);
      readConfig(dir);
      await prepareKey(dir);
      const { url, thumbprint, nextThumbprint } = await loadIdentity(dir);
      return {
        json: { url, thumbprint, next: nextThumbprint },
        text: [
          `Prepared the key ${nextThumbprint}. It signs nothing yet.`,
          'Start the node again, so that it shows the key. Then each peer takes it beside the present one, and starts again:',
          `  holdfast peer add --replace --url ${url} --key ${thumbprint} --next-key ${nextThumbprint} …`,
          'When all have, `holdfast key rotate` changes to it.',
        ].join('\n'),
      };
    }),
  );

  leaf(
    commands,
    'rotate',
    'change to the prepared key, or to a new one; the old one verifies receipts only',
    ['key rotate --dir triage'],
  ).action((options: CommonOptions) =>
    session.finish(options, async () => {
      const dir = session.dirOf(options);
      readConfig(dir);
      const before = await loadIdentity(dir);
      await rotateKey(dir, systemClock);
      const { url, thumbprint } = await loadIdentity(dir);
      const told = before.nextThumbprint === thumbprint;
      return {
        json: { url, thumbprint, retired: before.thumbprint, prepared: told },
        text: [
          `Changed to the key ${thumbprint}; ${before.thumbprint} is retired. A running node uses it when it starts again.`,
          told
            ? 'Peers that took it as --next-key go on without a break; each makes it its only key at its leisure:'
            : 'It was not prepared: peers refuse this agent until each has been told, and started again:',
          `  holdfast peer add --replace --url ${url} --key ${thumbprint} …`,
        ].join('\n'),
      };
    }),
  );
}
