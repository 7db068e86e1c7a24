import type { Command } from 'commander';
import { addPeer, readConfig } from '../../node/index.js';
import { asOptions } from '../options.js';
import { printTable } from '../print.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';
import { addPeerAnswers } from './peer-answers.js';

const OPTIONS = {
  url: '--url',
  key: '--key',
  next_key: '--next-key',
  contracts: '--contract',
  skills: '--skill',
};

interface AddOptions extends CommonOptions {
  url: string;
  key: string;
  nextKey?: string;
  contract: string[];
  skill: string[];
  replace?: boolean;
}

export function addPeerCommands(program: Command, session: Session): void {
  const peer = group(
    program,
    'peer',
    'the agents that handoffs are exchanged with',
    'peer list --dir triage',
  );
  addPeerAnswers(peer, session);
  leaf(
    peer,
    'add',
    'add a peer to the configuration',
    [
      'peer add --dir triage --url http://127.0.0.1:4200 --key <thumbprint> --contract refund-dispute/1 --skill billing',
    ],
    { db: false },
  )
    .requiredOption('--url <url>', "the peer's URL, as its `holdfast identity` prints it")
    .requiredOption('--key <thumbprint>', "the thumbprint of the peer's key, from the same place")
    .option(
      '--next-key <thumbprint>',
      'the key that the peer is about to change to (`holdfast key prepare` there)',
    )
    .requiredOption('--contract <id...>', 'contracts that may pass between both agents')
    .requiredOption('--skill <id...>', 'skills that either may use')
    .option('--replace', 'replace what is configured for this URL')
    .action((options: AddOptions) =>
      session.finish(options, async () => {
        const { url, key, nextKey, contract: contracts, skill: skills, replace = false } = options;
        const config = await asOptions(OPTIONS, async () =>
          addPeer(session.dirOf(options), { url, key, nextKey, contracts, skills }, { replace }),
        );
        const added = config.peers.find((one) => one.key === key);
        return {
          json: { peer: added },
          text: `${config.agent} now knows ${added?.url}. A running node reads this when it starts again.`,
        };
      }),
    );
  leaf(peer, 'list', 'list the configured peers', ['peer list --dir triage'], { db: false }).action(
    (options: CommonOptions) =>
      session.finish(options, async () => {
        const { peers } = readConfig(session.dirOf(options));
        return {
          json: { peers },
          text: printTable(
            ['URL', 'KEY', 'CONTRACTS', 'SKILLS'],
            peers.map(({ url, key, next_key, contracts, skills }) => [
              url,
              next_key === undefined ? key : `${key},${next_key}`,
              contracts.join(','),
              skills.join(','),
            ]),
          ),
        };
      }),
  );
}
