import { canonical, isJsonObject, sha256Hex } from '../core/index.js';
import type { Quarantine } from '../ledger/index.js';
import { entriesIn } from './export.js';

/** Where the chain of one case ended when someone looked. */
export interface CaseHead {
  readonly tenant: string;
  readonly root: string;
  readonly caseId: string;
  readonly seq: number;
  readonly hash: string;
}

/** Heads as JSON lines, in canonical JSON, and the digest of these bytes, which is what is signed. */
export function writeHeads(heads: readonly CaseHead[]): { readonly lines: string; readonly digest: string } {
  const lines = heads
    .map(({ tenant, root, caseId, seq, hash }) => `${canonical({ tenant, root, caseId, seq, hash })}\n`)
    .join('');
  return { lines, digest: sha256Hex(lines) };
}

/** Reads what {@link writeHeads} wrote; null where a line is no head. */
export function readHeads(lines: string): CaseHead[] | null {
  const heads: CaseHead[] = [];
  for (const line of lines.split('\n')) {
    if (line === '') continue;
    const head = parseHead(line);
    if (head === null) return null;
    heads.push(head);
  }
  return heads;
}

/** The heads that an export ends with; verify it first. */
export function headsOfExport(text: string): CaseHead[] {
  const heads = new Map<string, CaseHead>();
  for (const { tenant, root, caseId, seq, hash } of entriesIn(text)) {
    heads.set(canonical([tenant, root, caseId]), { tenant, root, caseId, seq, hash });
  }
  return [...heads.values()];
}

/** How a ledger stands to a head kept elsewhere: null where it still holds it, or why the case must not go on. */
export function compareHead(
  head: CaseHead,
  ledger: {
    readonly head: { readonly seq: number; readonly hash: string } | null;
    readonly hashThere: string | null;
  },
): Exclude<Quarantine['reason'], 'epoch_regressed'> | null {
  if (ledger.hashThere === head.hash) return null;
  if (ledger.head === null) return 'case_missing';
  return ledger.hashThere === null ? 'audit_regressed' : 'audit_forked';
}

function parseHead(line: string): CaseHead | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isJsonObject(value)) return null;
  const { tenant, root, caseId, seq, hash } = value;
  return typeof tenant === 'string' &&
    typeof root === 'string' &&
    typeof caseId === 'string' &&
    typeof hash === 'string' &&
    Number.isSafeInteger(seq)
    ? { tenant, root, caseId, seq: seq as number, hash }
    : null;
}
