import { type CaseRef, canonical, sha256Hex } from '../core/index.js';
import type { AuditEntry, AuditFact } from '../ledger/index.js';

/** Keeps a hash of this chain from being one of anything else. */
const DOMAIN = 'holdfast-audit-v1\n';

export interface ChainHead {
  readonly seq: number;
  readonly hash: string;
}

/** An entry with the exact bytes that its hash covers; a storage keeps those bytes. */
export interface ChainedEntry {
  readonly entry: AuditEntry;
  readonly bytes: string;
}

/** Puts a fact behind the head of its case's chain (`null` for the first). */
export function chain(prev: ChainHead | null, fact: AuditFact, ref: CaseRef, at: string): ChainedEntry {
  const body = {
    ...fact,
    tenant: ref.tenant,
    root: ref.root,
    caseId: ref.caseId,
    seq: (prev?.seq ?? 0) + 1,
    at,
    prevHash: prev?.hash ?? '',
  };
  const bytes = canonical(body);
  return { entry: { ...body, hash: hashOf(bytes) }, bytes };
}

export type ChainProblem = 'gap' | 'fork' | 'tamper' | 'order';

export type ChainVerdict =
  | { readonly ok: true; readonly entries: number }
  | { readonly ok: false; readonly seq: number; readonly problem: ChainProblem };

/**
 * Whether the entries of one case are a whole chain from its first entry on. `seq` says where it breaks: a `gap` before it,
 * a `fork` (two entries in one place), `tamper` (its bytes are not what was hashed), or out of `order`. A tail that was cut
 * off, or a chain rewritten as a whole, shows only against a head kept elsewhere.
 */
export function verifyChain(entries: readonly AuditEntry[]): ChainVerdict {
  const first = entries[0];
  let prev: AuditEntry | null = null;
  for (const entry of entries) {
    const problem = problemOf(entry, prev, entries, first);
    if (problem !== null) return { ok: false, seq: entry.seq, problem };
    prev = entry;
  }
  return { ok: true, entries: entries.length };
}

function problemOf(
  entry: AuditEntry,
  prev: AuditEntry | null,
  entries: readonly AuditEntry[],
  first: AuditEntry | undefined,
): ChainProblem | null {
  const { hash, ...body } = entry;
  if (hashOf(canonical(body)) !== hash) return 'tamper';
  if (entry.tenant !== first?.tenant || entry.root !== first.root || entry.caseId !== first.caseId)
    return 'tamper';
  const expected = (prev?.seq ?? 0) + 1;
  if (entry.seq !== expected) {
    if (entry.seq === prev?.seq) return 'fork';
    if (entry.seq < expected) return 'order';
    return entries.some((other) => other.seq === expected) ? 'order' : 'gap';
  }
  if (entry.prevHash === (prev?.hash ?? '')) return null;
  return entries.some((other) => other !== entry && other.prevHash === entry.prevHash) ? 'fork' : 'tamper';
}

function hashOf(bytes: string): string {
  return sha256Hex(DOMAIN + bytes);
}
