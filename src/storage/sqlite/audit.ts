import type Database from 'better-sqlite3';
import { type ChainHead, chain } from '../../audit/index.js';
import type { CaseRef } from '../../core/index.js';
import type { AuditEntry, CaseFacts } from '../../ledger/index.js';
import { ofRef, type RefColumns, toRef } from '../rows/keys.js';
import { exactlyOne } from './errors.js';
import { insertInto, THIS_CASE } from './keys.js';

interface Columns extends RefColumns {
  seq: number;
  /** The bytes that the hash covers. */
  entry: string;
  prev_hash: string;
  hash: string;
}

const COLUMNS = [
  'tenant',
  'root',
  'case_id',
  'seq',
  'entry',
  'prev_hash',
  'hash',
] as const satisfies readonly (keyof Columns)[];

export function auditTable(db: Database.Database) {
  const head = db.prepare<RefColumns, ChainHead>(
    `SELECT seq, hash FROM audit WHERE ${THIS_CASE} ORDER BY seq DESC LIMIT 1`,
  );
  const list = db.prepare<RefColumns, Pick<Columns, 'entry' | 'hash'>>(
    `SELECT entry, hash FROM audit WHERE ${THIS_CASE} ORDER BY seq`,
  );
  const cases = db.prepare<[string], RefColumns>(
    'SELECT tenant, root, case_id FROM audit WHERE tenant = ? AND seq = 1 ORDER BY root, case_id',
  );
  const hash = db
    .prepare<RefColumns & { seq: number }, string>(`SELECT hash FROM audit WHERE ${THIS_CASE} AND seq = @seq`)
    .pluck();
  const add = db.prepare<Columns>(insertInto('audit', COLUMNS));
  return {
    nextSeq: (ref: CaseRef): number => (head.get(ofRef(ref))?.seq ?? 0) + 1,
    head: (ref: CaseRef): ChainHead | null => head.get(ofRef(ref)) ?? null,
    hash: (ref: CaseRef, seq: number): string | null => hash.get({ ...ofRef(ref), seq }) ?? null,
    list: (ref: CaseRef): AuditEntry[] =>
      list.all(ofRef(ref)).map(({ entry, hash }) => ({ ...JSON.parse(entry), hash })),
    cases: (tenant: string): CaseRef[] => cases.all(tenant).map(toRef),
    /** Returns the new head of the case's chain. */
    append({ ref, facts }: CaseFacts, at: string): ChainHead | null {
      let prev = head.get(ofRef(ref)) ?? null;
      for (const fact of facts) {
        const { entry, bytes } = chain(prev, fact, ref, at);
        const { seq, prevHash, hash } = entry;
        exactlyOne(add.run({ ...ofRef(ref), seq, entry: bytes, prev_hash: prevHash, hash }));
        prev = { seq, hash };
      }
      return prev;
    },
  };
}
