import type { ChainHead } from '../../audit/index.js';
import type { CaseRef } from '../../core/index.js';
import type { AuditEntry } from '../../ledger/index.js';
import { type RefColumns, toRef } from '../rows/keys.js';
import { type Ask, caseOf, THIS_CASE } from './keys.js';

const LIST = {
  name: 'audit',
  text: `SELECT entry, hash FROM holdfast.audit WHERE ${THIS_CASE} ORDER BY seq`,
};
const CASES = {
  name: 'audited cases',
  text: 'SELECT tenant, root, case_id FROM holdfast.audit_heads WHERE tenant = $1 ORDER BY root, case_id',
};
const HEAD = { name: 'audit head', text: `SELECT seq, hash FROM holdfast.audit_heads WHERE ${THIS_CASE}` };
const HASH = { name: 'audit hash', text: `SELECT hash FROM holdfast.audit WHERE ${THIS_CASE} AND seq = $4` };

export interface EntryColumns {
  /** The bytes that the hash covers. */
  entry: string;
  hash: string;
}

export const toEntry = ({ entry, hash }: EntryColumns): AuditEntry => ({ ...JSON.parse(entry), hash });

export const auditTable = (ask: Ask) => ({
  list: async (ref: CaseRef): Promise<AuditEntry[]> =>
    (await ask<EntryColumns>(LIST, caseOf(ref))).map(toEntry),
  cases: async (tenant: string): Promise<CaseRef[]> =>
    (await ask<RefColumns & object>(CASES, [tenant])).map(toRef),
  head: async (ref: CaseRef): Promise<ChainHead | null> =>
    (await ask<ChainHead>(HEAD, caseOf(ref)))[0] ?? null,
  hash: async (ref: CaseRef, seq: number): Promise<string | null> =>
    (await ask<{ hash: string }>(HASH, [...caseOf(ref), seq]))[0]?.hash ?? null,
});
