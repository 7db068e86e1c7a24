import type { Command } from 'commander';
import { exportChain, problemsOf, verifyExport } from '../../audit/index.js';
import { type CaseRef, HoldfastError } from '../../core/index.js';
import type { AuditEntry, CaseSnapshot } from '../../ledger/index.js';
import type { Holdfast } from '../../node/index.js';
import { ambiguous, ROOT_OPTION } from '../cases.js';
import { EXIT } from '../exit-codes.js';
import { readExport, writeNew } from '../files.js';
import { counted, printTable } from '../print.js';
import { type CommonOptions, group, leaf, type Result, type Session } from '../run.js';
import { addAuditHead } from './audit-head.js';

interface CaseOptions extends CommonOptions {
  root?: string;
}

interface VerifyOptions extends CaseOptions {
  case?: string;
  file?: string;
}

export function addAudit(program: Command, session: Session): void {
  const commands = group(
    program,
    'audit',
    'what happened to each case, hash-chained',
    'audit verify --dir triage',
  );
  leaf(commands, 'show <case>', 'list the entries of a case', ['audit show CASE-7001 --dir triage'])
    .option(...ROOT_OPTION)
    .action((id: string, options: CaseOptions) =>
      session.withAgent(options, async (holdfast) => {
        const [chain = []] = await chainsOf(holdfast, id, options.root);
        return { json: { entries: chain }, text: showEntries(chain) };
      }),
    );

  leaf(commands, 'verify', 'check the chains, and that the ledger says what they replay to', [
    'audit verify --dir triage',
    'audit verify --case CASE-7001 --dir triage',
    'audit verify --file audit.jsonl',
  ])
    .option('--case <id>', 'only this case (default: every case in the ledger)')
    .option('--file <export>', 'check an export instead, without any ledger')
    .option(...ROOT_OPTION)
    .action((options: VerifyOptions) => {
      const { file } = options;
      return file === undefined
        ? session.withAgent(options, (holdfast) => verifyLedger(holdfast, options))
        : session.finish(options, async () => verifyFile(file));
    });

  leaf(commands, 'export', 'write entries as JSON lines, to be checked elsewhere', [
    'audit export --dir triage > audit.jsonl',
    'audit export --case CASE-7001 --out audit.jsonl --dir triage',
  ])
    .option('--case <id>', 'only this case (default: every case in the ledger)')
    .option('--out <file>', 'write to this new file instead of stdout')
    .option(...ROOT_OPTION)
    .action((options: CaseOptions & { case?: string; out?: string }) =>
      session.withAgent(options, async (holdfast) => {
        const chains = await chainsOf(holdfast, options.case, options.root);
        const lines = chains.map(exportChain).join('');
        const count = chains.reduce((sum, { length }) => sum + length, 0);
        if (options.out !== undefined) {
          writeNew(options.out, lines);
          const json = { file: options.out, cases: chains.length, entries: count };
          return {
            json,
            text: `Wrote ${counted(count, 'entry')} of ${counted(chains.length, 'case')} to ${options.out}.`,
          };
        }
        return { json: { entries: chains.flat() }, text: lines.replace(/\n$/, '') };
      }),
    );
  addAuditHead(commands, session);
}

/** What was found out about one case. */
interface CaseVerdict {
  readonly case_id: string;
  readonly root: string;
  readonly entries: number;
  readonly ok: boolean;
  readonly problems: readonly string[];
}

async function verifyLedger(holdfast: Holdfast, options: VerifyOptions): Promise<Result> {
  const verdicts: CaseVerdict[] = [];
  for (const ref of await refsOf(holdfast, options.case, options.root)) {
    verdicts.push(judge(ref, await holdfast.ledger.snapshot(ref)));
  }
  const ok = verdicts.every((verdict) => verdict.ok);
  const entries = verdicts.reduce((sum, verdict) => sum + verdict.entries, 0);
  return {
    json: { verified: ok, entries, cases: verdicts },
    text: [
      ...verdicts.flatMap(({ case_id, root, problems }) =>
        problems.map((problem) => `${case_id} (root ${root}): ${problem}`),
      ),
      ok
        ? `Verified: ${counted(entries, 'entry')} of ${counted(verdicts.length, 'case')}, and the ledger agrees with them.`
        : 'The audit does NOT verify.',
    ].join('\n'),
    exit: ok ? EXIT.ok : EXIT.auditBroken,
  };
}

function judge(ref: CaseRef, snapshot: CaseSnapshot): CaseVerdict {
  const problems = problemsOf(snapshot);
  const entries = snapshot.audit.length;
  return { case_id: ref.caseId, root: ref.root, entries, ok: problems.length === 0, problems };
}

function verifyFile(file: string): Result {
  const verdict = verifyExport(readExport(file));
  if (verdict.ok) {
    const text = `Verified: ${counted(verdict.entries, 'entry')} of ${counted(verdict.cases, 'case')}.`;
    return { json: { verified: true, entries: verdict.entries, cases: verdict.cases }, text };
  }
  const where =
    verdict.problem === 'malformed' ? `line ${verdict.line}` : `${verdict.caseId}, entry ${verdict.seq}`;
  return {
    json: { verified: false, ...verdict },
    text: `The export does NOT verify: ${verdict.problem} at ${where}.`,
    exit: EXIT.auditBroken,
  };
}

async function refsOf(holdfast: Holdfast, id?: string, root?: string): Promise<CaseRef[]> {
  const all = await holdfast.ledger.listAuditedCases(holdfast.config.tenant);
  if (id === undefined) return all;
  // A case that was only ever refused has an audit and no row.
  const wanted = root === undefined ? undefined : holdfast.caseRef(id, root).root;
  const found = all.filter((ref) => ref.caseId === id && (wanted === undefined || ref.root === wanted));
  if (found.length === 0)
    throw new HoldfastError('case_unknown', `There is no audit of a case ${id} in this ledger.`);
  return found;
}

async function chainsOf(holdfast: Holdfast, id?: string, root?: string): Promise<AuditEntry[][]> {
  const refs = await refsOf(holdfast, id, root);
  if (id !== undefined && refs.length > 1) throw ambiguous(id, refs);
  return Promise.all(refs.map((ref) => holdfast.ledger.readAudit(ref)));
}

function showEntries(entries: readonly AuditEntry[]): string {
  return printTable(
    ['SEQ', 'AT', 'WHAT', 'BY', 'EPOCH', 'RULE', 'HASH'],
    entries.map((entry) => [
      String(entry.seq),
      entry.at,
      entry.handoffId === undefined ? entry.type : `${entry.type} ${entry.handoffId}:${entry.attempt}`,
      entry.actor,
      epochs(entry),
      entry.rule ?? '',
      entry.hash.slice(0, 12),
    ]),
  );
}

function epochs({ epochBefore, epochAfter }: AuditEntry): string {
  if (epochBefore === undefined && epochAfter === undefined) return '';
  if (epochBefore === undefined || epochAfter === undefined || epochBefore === epochAfter) {
    return String(epochBefore ?? epochAfter);
  }
  return `${epochBefore}->${epochAfter}`;
}
