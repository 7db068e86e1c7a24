import type Database from 'better-sqlite3';
import type { Change, ClaimRow } from '../../ledger/index.js';
import { exactlyOne } from './errors.js';

/** Leases and what is claimed under them; a claim goes with its lease. */
export function claimTable(db: Database.Database) {
  const until = db.prepare<[string], string>('SELECT until FROM holders WHERE holder = ?').pluck();
  const sweep = db.prepare<[string]>('DELETE FROM holders WHERE until <= ?');
  const keep = db.prepare<[string, string]>(
    'INSERT INTO holders (holder, until) VALUES (?, ?) ON CONFLICT (holder) DO UPDATE SET until = excluded.until',
  );
  const end = db.prepare<[string]>('DELETE FROM holders WHERE holder = ?');
  const claim = db.prepare<ClaimRow>(
    `INSERT INTO claims (tenant, what, id, holder) VALUES (@tenant, @what, @id, @holder)
     ON CONFLICT (tenant, what, id) DO UPDATE SET holder = excluded.holder`,
  );
  const unclaim = db.prepare<ClaimRow>(
    'DELETE FROM claims WHERE tenant = @tenant AND what = @what AND id = @id AND holder = @holder',
  );
  return {
    alive: (holder: string, now: string): boolean => (until.get(holder) ?? '') > now,
    keep(change: Extract<Change, { do: 'keep_lease' }>): void {
      sweep.run(change.now);
      exactlyOne(keep.run(change.holder, change.until));
    },
    end: (holder: string): void => void end.run(holder),
    claim: (row: ClaimRow): void => exactlyOne(claim.run(row)),
    unclaim: (row: ClaimRow): void => void unclaim.run(row),
  };
}
