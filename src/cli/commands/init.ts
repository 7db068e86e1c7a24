import { type Command, Option } from 'commander';
import { initAgent, ledgerPlace, loadIdentity, redactUrl } from '../../node/index.js';
import { asOptions } from '../options.js';
import { type CommonOptions, leaf, type Session } from '../run.js';

const OPTIONS = { agent: '--agent', url: '--url', ledger: '--ledger' };

interface InitOptions extends CommonOptions {
  agent: string;
  url: string;
  ledger: string;
  mode: 'shared' | 'separate';
}

export function addInit(program: Command, session: Session): void {
  leaf(
    program,
    'init',
    "make an agent's folder: configuration, key and evidence secret",
    [
      'init --agent triage --dir triage --ledger ../ledger.db',
      'init --agent billing --dir billing --ledger ../ledger.db --url http://127.0.0.1:4200',
      'init --agent triage --dir triage --mode separate',
    ],
    { db: false },
  )
    .requiredOption('--agent <name>', "the agent's name")
    .option('--url <url>', 'the public URL at which peers reach it', 'http://127.0.0.1:4100')
    .option(
      '--ledger <target>',
      'the ledger file, relative to the folder, or postgres://user@host/name; with --mode shared, both agents name the same',
      'ledger.db',
    )
    .addOption(
      new Option('--mode <mode>', 'whether both agents use one ledger, or each has its own')
        .choices(['shared', 'separate'])
        .default('shared'),
    )
    .action((options: InitOptions) =>
      session.finish(options, async () => {
        const dir = session.dirOf(options);
        const config = await asOptions(OPTIONS, () => initAgent({ ...options, dir }));
        const { url, thumbprint } = await loadIdentity(dir);
        const [contract] = config.receives;
        const peerAdd = `holdfast peer add --dir <the other agent's folder> --url ${url} --key ${thumbprint} --contract ${contract} --skill billing`;
        return {
          json: {
            dir,
            agent: config.agent,
            url,
            thumbprint,
            ledger: redactUrl(ledgerPlace(config, dir).target),
            peer_add: peerAdd,
          },
          text: [
            `Made ${config.agent} in ${dir}.`,
            `  url         ${url}`,
            `  thumbprint  ${thumbprint}`,
            'So that another agent knows this one:',
            `  ${peerAdd}`,
            'Then:',
            `  holdfast serve --dir ${options.dir ?? '.'}`,
          ].join('\n'),
        };
      }),
    );
}
