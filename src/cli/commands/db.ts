import { resolve } from 'node:path';
import type { Command } from 'commander';
import {
  backupLedger,
  type Examination,
  examineLedger,
  type Finding,
  isHealthy,
  type LedgerPlace,
  type LedgerStatus,
  ledgerStatus,
  migrateLedger,
  namedPlace,
  redactUrl,
  restoreLedger,
} from '../../node/index.js';
import { EXIT } from '../exit-codes.js';
import { counted, printFields } from '../print.js';
import {
  type CommonOptions,
  group,
  isUnavailable,
  leaf,
  type Result,
  type Session,
  unavailable,
} from '../run.js';

export function addDb(program: Command, session: Session): void {
  const db = group(program, 'db', 'the database of a ledger', 'db status --dir triage');

  leaf(db, 'migrate', "make the ledger's schema, or bring it to what this version knows", [
    'db migrate --dir triage',
    'db migrate --db postgres://holdfast@db.internal/ledger',
  ]).action((options: CommonOptions) =>
    withPlace(session, options, async ({ target, options: how }) => {
      const { from, to, target: shown } = await migrateLedger(target, how);
      const text =
        from === to
          ? `${shown} has schema ${to}, the newest known.`
          : `${shown}: schema ${from} is now ${to}.`;
      return { json: { target: shown, from, to }, text };
    }),
  );

  leaf(db, 'status', 'what the ledger is and holds; changes nothing', [
    'db status --dir triage',
    'db status --db ledger.db --json',
  ]).action((options: CommonOptions) =>
    withPlace(session, options, async (place) => showStatus(await ledgerStatus(place.target, place.options))),
  );

  leaf(db, 'doctor', 'examine settings, damage, and every audit chain against the ledger; changes nothing', [
    'db doctor --dir triage',
    'db doctor --db postgres://holdfast@db.internal/ledger --json',
  ]).action((options: CommonOptions) =>
    withPlace(session, options, async (place) =>
      showExamination(await examineLedger(place.target, place.options)),
    ),
  );

  leaf(db, 'backup <file>', 'write all of the ledger to a new file, as of one moment, while it is in use', [
    'db backup ledger.jsonl.gz --dir triage',
    'db backup ledger.jsonl --db postgres://holdfast@db.internal/ledger',
  ]).action((file: string, options: CommonOptions) =>
    withPlace(session, options, async ({ target, options: how }) => {
      const { rows, sha256, taken_at, incarnation } = await backupLedger(target, resolve(file), how);
      return {
        json: { file, target: redactUrl(target), taken_at, incarnation, rows, sha256 },
        text: [
          `Wrote ${file}: ${counted(rows.cases ?? 0, 'case')}, ${counted(rows.audit ?? 0, 'entry')} of audit; read back whole.`,
          `  sha256  ${sha256}`,
          'It holds the ledger alone: back up evidence, keys and your own tables, too.',
        ].join('\n'),
      };
    }),
  );

  leaf(db, 'restore <file>', 'fill an empty ledger, of either engine, with a backup; all or nothing', [
    'db restore ledger.jsonl.gz --db new-ledger.db',
    'db restore ledger.jsonl.gz --db postgres://holdfast@db.internal/ledger',
  ]).action((file: string, options: CommonOptions) =>
    withPlace(session, options, async ({ target, options: how }) => {
      const { rows, taken_at, incarnation, restored_as } = await restoreLedger(target, resolve(file), how);
      const shown = redactUrl(target);
      return {
        json: { file, target: shown, taken_at, incarnation, restored_as, rows, check_first: CHECK_FIRST },
        text: [
          `Restored ${counted(rows.cases ?? 0, 'case')} and ${counted(rows.audit ?? 0, 'entry')} of audit, as of ${taken_at}, into ${shown}.`,
          `The ledger was ${incarnation} and is now ${restored_as}. Before any agent serves it:`,
          ...CHECK_FIRST.map((line) => `  - ${line}`),
          `Then each agent that has worked with the other ledger takes this one: \`holdfast witness accept ${restored_as} --dir …\`.`,
        ].join('\n'),
      };
    }),
  );
}

/** What no backup can know. */
const CHECK_FIRST = [
  'No process uses the ledger from which the backup was taken any more: two ledgers are two owners of each case.',
  'What was committed after the backup is missing: compare `holdfast audit export` kept elsewhere, and receipts that peers hold.',
  'Effects started after the backup may have happened: look into the business systems before anybody starts them again.',
  '`holdfast db doctor` finds nothing, and `holdfast config check` of every agent names this ledger.',
];

/** Needs no agent where the ledger is named. */
export function withPlace(
  session: Session,
  options: CommonOptions,
  work: (place: LedgerPlace) => Promise<Result>,
): Promise<void> {
  return session.finish(options, async () => {
    const place = namedPlace(session.dirOf(options), session.ledgerOf(options));
    try {
      return await work(place);
    } catch (error) {
      throw isUnavailable(error) ? unavailable(error, place.target) : error;
    }
  });
}

function showStatus(status: LedgerStatus): Result {
  const { target, engine, schema, incarnation, counts, inspection } = status;
  const { summary, findings } = inspection;
  return {
    json: { target, engine, schema, incarnation, counts, database: summary, findings },
    text: [
      printFields([
        ['ledger', target],
        ['database', summary],
        [
          'schema',
          schema.found === schema.known
            ? schema.found
            : schema.found === 0
              ? 'none yet; `holdfast db migrate` makes it'
              : `${schema.found} (this version knows ${schema.known})`,
        ],
        ['incarnation', incarnation],
        ['cases', counts?.cases],
        ['open offers', counts?.open_offers],
        ['open work', counts?.open_work],
        ['unknown effects', counts?.unknown_effects],
        ['quarantined', counts?.quarantined],
        ['waits for', counts && counted(counts.waiting_peers, 'peer')],
      ]),
      ...findings.map(lineOf),
    ].join('\n'),
  };
}

function showExamination(examined: Examination): Result {
  const { target, summary, findings, audit } = examined;
  const healthy = isHealthy(examined);
  const read = audit
    ? `Read ${counted(audit.entries, 'entry')} of audit of ${counted(audit.cases, 'case')}.`
    : 'The audit was not read.';
  return {
    json: { target, healthy, database: summary, findings, audit },
    text: [
      `${target}: ${summary}`,
      ...findings.map(lineOf),
      `${read} ${healthy ? 'Nothing unsafe was found.' : 'The ledger is NOT safe.'}`,
    ].join('\n'),
    exit: healthy
      ? EXIT.ok
      : findings.some(({ code }) => code === 'audit_broken')
        ? EXIT.auditBroken
        : EXIT.unsafe,
  };
}

const lineOf = ({ severity, code, message }: Finding) => `${severity.padEnd(6)}  ${message} (${code})`;
