import type { Command } from 'commander';
import type { AwaitedPeer } from '../../ledger/index.js';
import { printTable } from '../print.js';
import { type CommonOptions, leaf, type Session } from '../run.js';

interface WaiveOptions extends CommonOptions {
  person: string;
  reason: string;
}

/** Which peers have said what they hold since the agent was started, and the way out where one never will. */
export function addPeerAnswers(peer: Command, session: Session): void {
  leaf(peer, 'answers', 'which peers have said what they hold since the agent was started', [
    'peer answers --dir triage',
  ]).action((options: CommonOptions) =>
    session.withAgent(options, async ({ ledger, url }) => {
      const [incarnation, peers] = await Promise.all([ledger.getIncarnation(url), ledger.listAwaited(url)]);
      const text =
        incarnation === null
          ? 'No case here can be in another ledger: no peer is asked.'
          : printTable(['PEER', 'STATE', 'SINCE', 'BY', 'REASON'], peers.map(rowOf));
      return { json: { incarnation, peers }, text };
    }),
  );

  leaf(peer, 'waive <url>', 'do not wait for a peer that is gone for good, until the agent starts again', [
    'peer waive https://billing.example --person ann --reason "wound up; its cases were settled by hand" --dir triage',
  ])
    .requiredOption('--person <id>', 'the person who answers for it, such as ann.meyer')
    .requiredOption('--reason <text>', 'why, in one line without personal data, for the audit')
    .action((url: string, { person, reason, ...options }: WaiveOptions) =>
      session.withAgent(options, async (holdfast) => {
        const waived = await holdfast.waivePeer({ peer: url, person, reason });
        return {
          json: { peer: waived },
          text: `${waived.peer} is not waited for under ${waived.incarnation}. What it has accepted in the time that the ledger may have lost, nobody here knows.`,
        };
      }),
    );
}

function rowOf({ peer, state, since, by, reason }: AwaitedPeer): string[] {
  return [peer, state, since, by ?? '', reason ?? ''];
}
