import { canonical } from '../core/index.js';
import type { AuditEntry } from '../ledger/index.js';
import { type ChainProblem, verifyChain } from './chain.js';

/** One entry a line, canonical JSON, in order; exports of several cases may be put behind each other. */
export function exportChain(entries: readonly AuditEntry[]): string {
  return entries.map((entry) => `${canonical(entry)}\n`).join('');
}

export type ExportVerdict =
  | { readonly ok: true; readonly cases: number; readonly entries: number }
  | { readonly ok: false; readonly problem: 'malformed'; readonly line: number }
  | {
      readonly ok: false;
      readonly problem: ChainProblem;
      readonly tenant: string;
      readonly root: string;
      readonly caseId: string;
      readonly seq: number;
    };

/** Checks an export with nothing but its text: each case's chain, as `verifyChain` does. */
export function verifyExport(text: string): ExportVerdict {
  const chains = new Map<string, AuditEntry[]>();
  let entries = 0;
  for (const [index, line] of text.split('\n').entries()) {
    if (line === '') continue;
    const entry = parseEntry(line);
    if (entry === null) return { ok: false, problem: 'malformed', line: index + 1 };
    const id = canonical([entry.tenant, entry.root, entry.caseId]);
    const chain = chains.get(id) ?? [];
    chain.push(entry);
    chains.set(id, chain);
    entries += 1;
  }
  for (const chain of chains.values()) {
    const verdict = verifyChain(chain);
    const first = chain[0];
    if (verdict.ok || first === undefined) continue;
    const { tenant, root, caseId } = first;
    return { ok: false, problem: verdict.problem, tenant, root, caseId, seq: verdict.seq };
  }
  return { ok: true, cases: chains.size, entries };
}

/** The entries of an export that verifies. */
export function entriesIn(text: string): AuditEntry[] {
  return text
    .split('\n')
    .map((line) => (line === '' ? null : parseEntry(line)))
    .filter((entry) => entry !== null);
}

function parseEntry(line: string): AuditEntry | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  const entry = value as Partial<Record<keyof AuditEntry, unknown>> | null;
  const whole =
    typeof entry === 'object' &&
    entry !== null &&
    typeof entry.tenant === 'string' &&
    typeof entry.root === 'string' &&
    typeof entry.caseId === 'string' &&
    typeof entry.seq === 'number' &&
    typeof entry.hash === 'string' &&
    typeof entry.prevHash === 'string';
  return whole ? (value as AuditEntry) : null;
}
