import { type Command, Option } from 'commander';
import { formatMoney, HoldfastError, isSameCase, personOwner } from '../../core/index.js';
import type { CaseRow, CaseSnapshot, Quarantine } from '../../ledger/index.js';
import { findCase, parseEpoch, ROOT_OPTION } from '../cases.js';
import { readCaseFile } from '../files.js';
import { counted, printFields, printTable } from '../print.js';
import { placeOf } from '../quarantine-report.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';
import { addOwnerChanges, PERSON_OPTION } from './people.js';

interface OpenOptions extends CommonOptions {
  id?: string;
  kind?: string;
  owner?: string;
  epoch?: string;
  importedFrom?: string;
}

interface OneCase extends CommonOptions {
  root?: string;
}

interface OwnerOptions extends OneCase {
  epoch: string;
  person?: string;
}

export function addCase(program: Command, session: Session): void {
  const commands = group(
    program,
    'case',
    'cases: who owns what, at which epoch',
    'case show CASE-7001 --dir triage',
  );

  leaf(commands, 'open [file]', 'open a case from a case file, or by its id and kind', [
    'case open case.json --dir triage',
    'case open --id CASE-7001 --kind refund --dir triage',
    'case open --id CASE-7001 --kind refund --epoch 3 --imported-from crm --dir triage',
  ])
    .option('--id <id>', 'the id of the case')
    .option('--kind <kind>', 'its kind')
    .option('--owner <url>', 'its first owner (default: this agent)')
    .option('--epoch <n>', 'the epoch at which another system hands it in (default: 1)')
    .option('--imported-from <system>', 'the system that hands it in')
    .action((file: string | undefined, options: OpenOptions) =>
      session.withAgent(options, async (holdfast) => {
        const named = await whichCase(file, options);
        const row = await holdfast.openCase({
          ...named,
          ...(options.owner === undefined ? {} : { owner: options.owner }),
          ...(options.epoch === undefined ? {} : { epoch: parseEpoch(options.epoch) }),
          ...(options.importedFrom === undefined ? {} : { importedFrom: options.importedFrom }),
        });
        return { json: { case: row }, text: `Opened ${standing(row)}.` };
      }),
    );

  leaf(commands, 'show <id>', 'show a case: owner, offers, work, effects and notes', [
    'case show CASE-7001 --dir triage',
  ])
    .option(...ROOT_OPTION)
    .action((id: string, options: OneCase) =>
      session.withAgent(options, async (holdfast) => {
        const ref = await findCase(holdfast, id, options.root);
        const snapshot = await holdfast.ledger.snapshot(ref);
        const pointer = await holdfast.statusPointer(ref);
        const all = await holdfast.ledger.listQuarantined(ref.tenant);
        const quarantine = all.find((one) => isSameCase(one.ref, ref)) ?? null;
        return {
          json: { ...withoutContent(snapshot), pointer, quarantine },
          text: showCase(snapshot, quarantine),
        };
      }),
    );

  leaf(commands, 'list', 'list the cases in the ledger', [
    'case list --dir triage',
    'case list --mine --open',
    'case list --person ann --dir billing',
  ])
    .option('--mine', 'only those that this agent owns')
    .addOption(
      new Option('--person <id>', 'only those that this person of this agent owns').conflicts('mine'),
    )
    .option('--open', 'only open ones')
    .action((options: CommonOptions & { mine?: boolean; person?: string; open?: boolean }) =>
      session.withAgent(options, async (holdfast) => {
        const cases = await holdfast.ledger.listCases(holdfast.config.tenant, {
          ...(options.mine ? { owner: holdfast.url } : {}),
          ...(options.person === undefined ? {} : { owner: personOwner(options.person, holdfast.url) }),
          ...(options.open ? { status: 'open' as const } : {}),
        });
        return {
          json: { cases },
          text: printTable(
            ['CASE', 'KIND', 'STATUS', 'EPOCH', 'OWNER', 'ROOT'],
            cases.map(({ ref, kind, status, epoch, owner }) => [
              ref.caseId,
              kind,
              status,
              String(epoch),
              owner,
              ref.root,
            ]),
          ),
        };
      }),
    );

  leaf(commands, 'note <id> <text>', 'write a note to a case, as its owner at an epoch', [
    'case note CASE-7001 "called the customer" --epoch 2 --dir billing',
    'case note CASE-7001 "called the customer" --epoch 3 --person ann --dir billing',
  ])
    .requiredOption('--epoch <n>', 'the epoch under which you own the case')
    .option(...PERSON_OPTION)
    .option(...ROOT_OPTION)
    .action((id: string, text: string, options: OwnerOptions) =>
      session.withAgent(options, async (holdfast) => {
        if (text.trim() === '') throw new HoldfastError('usage', 'The note is empty.');
        const epoch = parseEpoch(options.epoch);
        const ref = await findCase(holdfast, id, options.root);
        const note = await holdfast.note({ ref, epoch, text, ...personOf(options) });
        return { json: { note }, text: `Noted on ${id} at epoch ${epoch}.` };
      }),
    );

  leaf(commands, 'close <id>', 'close a case, as its owner at an epoch; this is final', [
    'case close CASE-7001 --epoch 2 --dir billing',
  ])
    .requiredOption('--epoch <n>', 'the epoch under which you own the case')
    .option(...PERSON_OPTION)
    .option(...ROOT_OPTION)
    .action((id: string, options: OwnerOptions) =>
      session.withAgent(options, async (holdfast) => {
        const ref = await findCase(holdfast, id, options.root);
        const epoch = parseEpoch(options.epoch);
        const row = await holdfast.closeCase({ ref, epoch, ...personOf(options) });
        return { json: { case: row }, text: `Closed ${standing(row)}.` };
      }),
    );

  addOwnerChanges(commands, session);
}

function personOf({ person }: OwnerOptions): { person?: string } {
  return person === undefined ? {} : { person };
}

async function whichCase(
  file: string | undefined,
  options: OpenOptions,
): Promise<{ caseId: string; kind: string }> {
  if (file !== undefined && options.id === undefined && options.kind === undefined) {
    const { case_id: caseId, kind } = await readCaseFile(file);
    return { caseId, kind };
  }
  if (file === undefined && options.id !== undefined && options.kind !== undefined) {
    return { caseId: options.id, kind: options.kind };
  }
  throw new HoldfastError('usage', 'Give either a case file, or --id and --kind.');
}

function standing({ ref, owner, epoch }: CaseRow): string {
  return `${ref.caseId} (root ${ref.root}): owner ${owner}, epoch ${epoch}`;
}

/** Envelopes and messages hold content; they are shown by `work list --json` and `handoff show` to who asks for one. */
function withoutContent({ case: row, offers, decisions, work, effects, notes, audit }: CaseSnapshot) {
  return {
    case: row,
    offers: offers.map(({ message: _, receiptKey: __, ...offer }) => offer),
    decisions: decisions.map(({ answer: _, ...decision }) => decision),
    work: work.map(({ envelope: _, ...item }) => item),
    effects,
    notes,
    audit_entries: audit.length,
  };
}

function showCase(
  { case: row, offers, work, effects, notes, audit }: CaseSnapshot,
  quarantine: Quarantine | null,
): string {
  if (!row) return '';
  const blocks = [
    printFields([
      ['case', row.ref.caseId],
      ['root', row.ref.root],
      ['kind', row.kind],
      ['status', row.status],
      ['owner', row.owner],
      ['epoch', row.epoch],
      ['contract', row.contract],
      ['passed', row.hops.join(' -> ')],
      ['audit', counted(audit.length, 'entry')],
      ['quarantine', quarantine && `${quarantine.reason}, since ${quarantine.at}`],
      ['witnessed', quarantine && placeOf(quarantine.witnessed)],
      ['found', quarantine && placeOf(quarantine.found)],
    ]),
    table(
      'Offers',
      ['HANDOFF', 'ATTEMPT', 'TO', 'STATE', 'CODE'],
      offers,
      ({ key, toAgent, state, code }) => [key.handoffId, String(key.attempt), toAgent, state, code ?? ''],
    ),
    table('Work', ['WORK ITEM', 'STATE', 'OWNER', 'EPOCH'], work, ({ id, state, owner, epoch }) => [
      id,
      state,
      owner,
      String(epoch),
    ]),
    table('Effects', ['KEY', 'OPERATION', 'AMOUNT', 'STATE', 'OUTCOME'], effects, (effect) => [
      effect.key,
      effect.operation,
      effect.amount ? formatMoney(effect.amount) : '',
      effect.state,
      effect.outcome ?? '',
    ]),
    table('Notes', ['AT', 'EPOCH', 'WRITER', 'TEXT'], notes, ({ at, epoch, writer, text }) => [
      at,
      String(epoch),
      writer,
      text,
    ]),
  ];
  return blocks.filter((block) => block !== '').join('\n\n');
}

function table<T>(title: string, columns: string[], rows: readonly T[], cells: (row: T) => string[]): string {
  return rows.length === 0 ? '' : `${title}\n${printTable(columns, rows.map(cells))}`;
}
