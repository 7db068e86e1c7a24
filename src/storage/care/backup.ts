import { existsSync, linkSync, mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { HoldfastError, isHoldfastError, newId, systemClock, toUtc } from '../../core/index.js';
import { type LedgerOptions, openDatabase, openLedger } from '../open.js';
import { isPostgresUrl, type LedgerTarget } from '../target.js';
import { type Backup, readBackup, writeBackup } from './backup-file.js';
import type { LedgerDatabase } from './database.js';

/**
 * Writes all that a ledger holds to a new file, as of one moment, while it may be in use, and reads the file back.
 * @throws already_exists, schema_newer, usage, ledger_unavailable, busy
 */
export async function backupLedger(
  target: LedgerTarget,
  file: string,
  options: LedgerOptions = {},
): Promise<Backup> {
  const database = await openDatabase(target, options);
  try {
    await assertCurrent(database);
    await database.frozen(async () => {
      const header = {
        format: 'holdfast-ledger',
        version: 1,
        engine: database.engine,
        incarnation: await database.incarnation(),
        taken_at: toUtc(systemClock.now()),
      } as const;
      await writeBackup(file, header, database);
    });
  } finally {
    await database.close();
  }
  try {
    return await readBackup(file);
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
}

export interface Restored extends Backup {
  /** The ledger's new incarnation; `incarnation` is that of the ledger from which the backup was taken. */
  readonly restored_as: string;
}

/**
 * Fills an empty ledger, or one that is not there yet, with a backup of either engine, all or nothing, and gives it an incarnation of
 * its own.
 * @throws backup_invalid, already_exists where the ledger holds anything, schema_newer, usage, ledger_unavailable, busy
 */
export async function restoreLedger(
  target: LedgerTarget,
  file: string,
  options: LedgerOptions = {},
): Promise<Restored> {
  const backup = await readBackup(file);
  const restored_as = newId('inc');
  const restoreInto = async (ledger: LedgerTarget) => {
    await (await openLedger(ledger, options)).close();
    await fill(ledger, file, restored_as, backup, options);
  };
  if (isPostgresUrl(target) || existsSync(target)) {
    await assertEmpty(target, options);
    await restoreInto(target);
  } else {
    await makeAside(target, restoreInto);
  }
  return { ...backup, restored_as };
}

/** Makes a file under another name and gives it its own when it is whole, unless somebody has made one under that name meanwhile. */
async function makeAside(target: string, make: (file: string) => Promise<void>): Promise<void> {
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  const aside = `${target}.${newId('new')}`;
  try {
    await make(aside);
    // The last to close it has copied its log back; a file without its log would lack what is in there.
    if (existsSync(`${aside}-wal`)) throw new HoldfastError('ledger_unavailable');
    linkSync(aside, target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new HoldfastError('already_exists', `${target} was made by somebody else meanwhile.`);
  } finally {
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${aside}${suffix}`, { force: true });
  }
}

async function fill(
  target: LedgerTarget,
  file: string,
  incarnation: string,
  { sha256 }: Backup,
  options: LedgerOptions,
): Promise<void> {
  const database = await openDatabase(target, options);
  try {
    await database.fill(incarnation, async (add) => {
      const read = await readBackup(file, add);
      if (read.sha256 !== sha256)
        throw new HoldfastError('backup_invalid', `${file} changed while it was read.`);
    });
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== 'internal') throw error;
    const message = `${file} has rows that contradict each other.`;
    throw new HoldfastError('backup_invalid', message, { data: { file }, cause: error });
  } finally {
    await database.close();
  }
}

/** Before anything is migrated, so that a ledger that is in use stays as it is. */
async function assertEmpty(target: LedgerTarget, options: LedgerOptions): Promise<void> {
  const database = await openDatabase(target, options);
  try {
    const { found, known } = await database.schema();
    if (found > known) throw newer(found, known);
    if (found === 0) return;
    if ((await database.count('cases')) + (await database.count('kinds')) === 0) return;
    throw new HoldfastError(
      'already_exists',
      'The ledger is not empty; a backup is restored into an empty one only.',
    );
  } finally {
    await database.close();
  }
}

/** What an older version of the schema lacks, or a newer one has, a backup would silently leave out. */
async function assertCurrent(database: LedgerDatabase): Promise<void> {
  const { found, known } = await database.schema();
  if (found === known) return;
  if (found > known) throw newer(found, known);
  if (found === 0)
    throw new HoldfastError(
      'usage',
      'There is no ledger in this database yet; see that it is the one you mean.',
    );
  throw new HoldfastError(
    'usage',
    `The ledger has schema ${found} and this version backs up ${known}: use the version that serves it, or migrate it first.`,
  );
}

function newer(found: number, known: number): HoldfastError {
  const message = `The ledger has schema ${found}; this version knows ${known}.`;
  return new HoldfastError('schema_newer', message, { data: { found, known } });
}
