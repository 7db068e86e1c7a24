import type { Command } from 'commander';
import { formatMoney } from '../../core/index.js';
import { printTable } from '../print.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';

export function addKind(program: Command, session: Session): void {
  const kind = group(
    program,
    'kind',
    'the sorts of cases, and what may be done with them',
    'kind list --dir triage',
  );
  leaf(kind, 'list', 'list the kinds in the ledger', ['kind list --dir triage']).action(
    (options: CommonOptions) =>
      session.withAgent(options, async ({ ledger, config }) => {
        const kinds = await ledger.listKinds(config.tenant);
        return {
          json: { kinds },
          text: printTable(
            ['KIND', 'SYSTEM OF RECORD', 'MODE', 'CONTRACTS', 'CAPS', 'PROHIBITED', 'MAY START'],
            kinds.map(({ kind: name, systemOfRecord, mode, contracts, policy }) => [
              name,
              systemOfRecord,
              mode,
              contracts.join(','),
              Object.entries(policy.caps)
                .map(([operation, cap]) => `${operation} ${formatMoney(cap)}`)
                .join(','),
              policy.prohibitions.join(','),
              Object.entries(policy.operations)
                .map(([agent, operations]) => `${agent}: ${operations.join('+')}`)
                .join(', '),
            ]),
          ),
        };
      }),
  );
  leaf(kind, 'apply', 'store the kinds of the configuration in the ledger', [
    'kind apply --dir triage',
    'kind apply --dir triage --replace',
  ])
    .option('--replace', 'replace other definitions that the ledger holds; open cases keep their constraints')
    .action((options: CommonOptions & { replace?: boolean }) =>
      session.withAgent(options, async (holdfast) => {
        const kinds = await holdfast.applyKinds({ replace: options.replace ?? false });
        return {
          json: { kinds },
          text: Object.entries(kinds)
            .map(([name, what]) => `${name}: ${what}`)
            .join('\n'),
        };
      }),
    );
}
