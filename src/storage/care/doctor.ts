import { problemsOf } from '../../audit/index.js';
import type { CaseRef } from '../../core/index.js';
import { type LedgerOptions, openDatabase, openLedger } from '../open.js';
import { type LedgerTarget, redactUrl } from '../target.js';
import type { LedgerDatabase } from './database.js';
import { type Finding, isUnsafe } from './inspection.js';
import { countsOf } from './status.js';

/** More of them say nothing new; all are counted. */
const MAX_PROBLEMS = 50;
const PAGE = 500;

export interface Examination {
  /** Without a password. */
  readonly target: string;
  readonly summary: string;
  readonly findings: readonly Finding[];
  /** How much was read of the audit; `null` where it could not be. */
  readonly audit: { readonly cases: number; readonly entries: number; readonly broken: number } | null;
}

/**
 * Examines a ledger while it may be in use: settings, damage, and every case's chain against what the ledger says of it, one case at a
 * time. Nothing is written.
 * @throws ledger_unavailable, config_invalid, busy
 */
export async function examineLedger(target: LedgerTarget, options: LedgerOptions = {}): Promise<Examination> {
  const database = await openDatabase(target, options);
  try {
    const { summary, findings } = await database.inspect();
    const found: Finding[] = [...findings, ...(await database.check())];
    const schema = await schemaFinding(database);
    if (schema) found.push(schema);
    const canReadCases = schema === null && !found.some(({ code }) => code === 'damaged');
    if (canReadCases) found.push(...(await attentionOf(database)));
    const audit = canReadCases ? await verifyCases(database, target, options, found) : null;
    return { target: redactUrl(target), summary, findings: found, audit };
  } finally {
    await database.close();
  }
}

export function isHealthy({ findings }: Examination): boolean {
  return !findings.some(isUnsafe);
}

async function schemaFinding(database: LedgerDatabase): Promise<Finding | null> {
  const { found, known } = await database.schema();
  if (found === known) return null;
  if (found > known) {
    const message = `The ledger has schema ${found}; this version knows ${known} and cannot examine it.`;
    return { severity: 'unsafe', code: 'schema_newer', message };
  }
  const message = `The ledger has schema ${found} of ${known}; \`holdfast db migrate\` brings it up.`;
  return { severity: 'warn', code: 'schema_old', message };
}

async function attentionOf(database: LedgerDatabase): Promise<Finding[]> {
  const { unknown_effects: unknown, quarantined } = await countsOf(database);
  const findings: Finding[] = [];
  if (unknown > 0) {
    const message = `Effects of which nobody knows whether they happened: ${unknown}. \`holdfast attention\` lists them; a person has to settle them.`;
    findings.push({ severity: 'warn', code: 'effects_unknown', message });
  }
  if (quarantined > 0) {
    const message = `Quarantined cases: ${quarantined}. This ledger contradicts what was witnessed or proved of them; \`holdfast attention\` lists them.`;
    findings.push({ severity: 'warn', code: 'cases_quarantined', message });
  }
  return findings;
}

async function verifyCases(
  database: LedgerDatabase,
  target: LedgerTarget,
  options: LedgerOptions,
  found: Finding[],
): Promise<Examination['audit']> {
  const unread = (why: string): null => {
    found.push({ severity: 'warn', code: 'audit_unread', message: `The audit was not read: ${why}` });
    return null;
  };
  if (found.some(({ code }) => code === 'read_only')) return unread('the database takes no writes.');
  const ledger = await openLedger(target, options);
  let [cases, entries, broken] = [0, 0, 0];
  try {
    for (let page: CaseRef[], last: CaseRef | null = null; ; last = page.at(-1) ?? null) {
      page = await database.casesAfter(last, PAGE);
      for (const ref of page) {
        const snapshot = await ledger.snapshot(ref);
        cases += 1;
        entries += snapshot.audit.length;
        const problems = problemsOf(snapshot);
        if (problems.length === 0) continue;
        broken += 1;
        if (broken > MAX_PROBLEMS) continue;
        const message = `${ref.caseId} (root ${ref.root}): ${problems.join('; ')}.`;
        found.push({ severity: 'unsafe', code: 'audit_broken', message });
      }
      if (page.length < PAGE) return { cases, entries, broken };
    }
  } finally {
    await ledger.close();
  }
}
