import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type Database from 'better-sqlite3';
import type { Finding, Inspection } from '../care/inspection.js';

type Judgement = readonly [name: string, severity: Finding['severity'], message: string];

const NETWORK = 'locks do not hold there between machines, and a commit may be on no disk.';
const MEMORY = 'it is gone when the machine stops.';

/** By the magic number that statfs(2) answers. */
const FILE_SYSTEMS: Readonly<Record<number, Judgement>> = {
  26985: ['NFS', 'unsafe', NETWORK],
  20859: ['SMB', 'unsafe', NETWORK],
  4283649346: ['CIFS', 'unsafe', NETWORK],
  4266872130: ['SMB2', 'unsafe', NETWORK],
  16914839: ['9p', 'unsafe', NETWORK],
  16914836: ['tmpfs', 'unsafe', MEMORY],
  2240043254: ['ramfs', 'unsafe', MEMORY],
  2035054128: ['overlayfs', 'warn', 'if this is a container, the ledger goes with it; use a volume.'],
  1702057286: ['FUSE', 'warn', 'whether locks and syncs hold there depends on what is behind it.'],
};

/** Every connection sets WAL, `synchronous = FULL` and foreign keys, and ends if the file does not take them: what is left is where it lies. */
export function inspectSqlite(db: Database.Database): Inspection {
  const findings: Finding[] = [];
  const [name, severity, why] = FILE_SYSTEMS[statfsSync(dirname(db.name)).type] ?? [];
  if (name !== undefined && severity !== undefined) {
    findings.push({ severity, code: 'file_system', message: `The ledger file lies on ${name}: ${why}` });
  }
  const version = db.prepare<[], string>('SELECT sqlite_version()').pluck().get();
  const journal = db.pragma('journal_mode', { simple: true });
  const place = name === undefined ? '' : `, on ${name}`;
  return { summary: `SQLite ${version}: journal_mode ${journal}, synchronous FULL${place}`, findings };
}
